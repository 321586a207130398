//! The collectives of one recording.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::explain::DeviceClocks;
use crate::record::{CollectiveRecord, RecordingClock, SubmissionKind, TimeSpan, TraceEvent, TraceStamp};

/// Calls that are kept.
const MAX_CALLS: usize = 1 << 16;
/// Submissions whose call has not come yet.
const MAX_OPEN: usize = 1 << 14;

/// A collective as one rank called it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankCall {
    /// The operation.
    pub name: Arc<str>,
    /// The communicator, the same number on all its ranks.
    pub communicator: u64,
    /// The rank.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// Which call of the operation on the communicator it is, from 1.
    pub number: u64,
    /// Bytes of the larger buffer.
    pub bytes: u64,
    /// The submission.
    pub stamp: TraceStamp,
    /// When it ran, or was submitted where that was not measured.
    pub span: Option<TimeSpan>,
}

/// What is the same on all ranks of one call: the communicator, the operation, and which call of it.
pub(super) type CollectiveKey = (u64, Arc<str>, u64);

impl RankCall {
    pub(super) fn key(&self) -> CollectiveKey {
        (self.communicator, self.name.clone(), self.number)
    }
}

/// What tells the calls of a rank apart.
type CallKey = (u64, u32, Arc<str>);

/// The collectives of one recording, the first few ten thousand.
#[derive(Clone, Debug, Default)]
pub struct RankLog {
    unix_ns: u64,
    is_virtual: bool,
    records_itself: bool,
    has_end: bool,
    run: String,
    clocks: DeviceClocks,
    calls: Vec<RankCall>,
    left_out: u64,
    names: HashSet<Arc<str>>,
    counts: HashMap<CallKey, u64>,
    /// Calls whose submission has not come yet, by their place.
    awaited: HashMap<TraceStamp, usize>,
    /// Submissions whose call has not come yet.
    spans: HashMap<TraceStamp, TimeSpan>,
}

impl RankLog {
    /// Takes an event.
    pub fn add(&mut self, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::Start(start) => {
                self.unix_ns = start.unix_ns;
                self.is_virtual = start.clock == RecordingClock::Virtual;
                self.run = start.run.to_owned();
                self.clocks.begin(start.clock);
            }
            TraceEvent::End(_) => self.has_end = true,
            TraceEvent::Device(device) => {
                self.clocks.add(device);
                // Another runtime, after the last had ended.
                self.has_end = false;
            }
            TraceEvent::Command(word) => self.records_itself |= word.records_itself,
            TraceEvent::Collective(call) => self.call(call),
            TraceEvent::Submission(work) if work.kind == SubmissionKind::Collective => {
                match self.awaited.remove(&work.stamp).and_then(|at| self.calls.get_mut(at)) {
                    Some(call) => call.span = Some(work.span()),
                    None if self.spans.len() < MAX_OPEN => {
                        self.spans.insert(work.stamp, work.span());
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// When the recording began, in nanoseconds since 1970; none if that is not known, or times are those of a simulated device.
    pub fn unix_ns(&self) -> Option<u64> {
        (self.unix_ns > 0 && !self.is_virtual).then_some(self.unix_ns)
    }

    /// Whether its times are those of a simulated device.
    pub fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// Whether the program began to record when it wanted to, and not with its runtime.
    pub fn records_itself(&self) -> bool {
        self.records_itself
    }

    /// Whether it was ended by its program; otherwise that was killed, crashed, or still runs.
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// The run that it is of, the same for all processes of one job; empty if the recording does not say.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The calls, in the order of the recording.
    pub fn calls(&self) -> &[RankCall] {
        &self.calls
    }

    /// Calls that there was no room for.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The ranks that this recording is of, in the largest communicator; empty if it has no collective.
    pub fn ranks(&self) -> BTreeSet<u32> {
        let most = self.calls.iter().map(|call| call.ranks).max().unwrap_or_default();
        self.calls.iter().filter(|call| call.ranks == most).map(|call| call.rank).collect()
    }

    /// Which of the recording's clocks the times of a call are on.
    pub(super) fn clock(&self, call: &RankCall) -> u32 {
        self.clocks.of(call.stamp.stream.device)
    }

    /// What that clock is.
    pub(super) fn clock_kind(&self, call: &RankCall) -> RecordingClock {
        self.clocks.kind(call.stamp.stream.device)
    }

    fn call(&mut self, call: &CollectiveRecord<'_>) {
        if self.calls.len() >= MAX_CALLS {
            self.left_out += 1;
            return;
        }
        let name = match self.names.get(call.name) {
            Some(name) => name.clone(),
            None => {
                let name: Arc<str> = call.name.into();
                self.names.insert(name.clone());
                name
            }
        };
        let number = self.counts.entry((call.communicator, call.rank, name.clone())).or_default();
        *number += 1;
        let CollectiveRecord { stamp, communicator, rank, ranks, bytes, .. } = *call;
        let span = self.spans.remove(&stamp);
        if span.is_none() {
            self.awaited.insert(stamp, self.calls.len());
        }
        let number = *number;
        self.calls.push(RankCall { name, communicator, rank, ranks, number, bytes, stamp, span });
    }
}
