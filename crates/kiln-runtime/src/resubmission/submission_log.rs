//! What was submitted and is not known to be done, kept so that it can be submitted again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::call::{Answer, Call};
use kiln_driver::{Command, Driver, Result, StreamId};
use kiln_order::{HostClock, MAX_STREAMS, Stamp, StreamClock, StreamKey, StreamState, Use};

use super::kept_submission::{Declared, Record};
use super::stream_start_marks::{MarkValues, StartMarks};
use super::uses_module_variables::Variables;
use crate::ids::BlockId;

/// Submissions of one stream that are kept while it is not known whether they are done.
const KEPT: usize = 1 << 16;

/// The submissions of a device, stream by stream.
pub(crate) struct SubmissionLog {
    marks: StartMarks,
    streams: [Mutex<StreamLog>; MAX_STREAMS],
    sequence: AtomicU64,
    variables: Variables,
}

/// The submissions of one stream.
struct StreamLog {
    records: VecDeque<Record>,
    /// The latest number that was marked.
    marked: u64,
    /// The latest that was marked and is known to be done: what its word holds is no older.
    done: u64,
    /// The latest whose accesses are not known: forgotten for want of room, or never told.
    unknown: u64,
}

impl StreamLog {
    const fn new() -> Self {
        Self { records: VecDeque::new(), marked: 0, done: 0, unknown: 0 }
    }

    fn forget_up_to(&mut self, number: u64) {
        while self.records.front().is_some_and(|front| front.stamp.number <= number) {
            self.records.pop_front();
        }
        if self.marked <= number {
            self.done = self.marked;
        }
    }
}

impl SubmissionLog {
    pub(crate) fn new(marks: StartMarks) -> Self {
        Self {
            marks,
            streams: [const { Mutex::new(StreamLog::new()) }; MAX_STREAMS],
            sequence: AtomicU64::new(0),
            variables: Variables::default(),
        }
    }

    pub(crate) fn marks(&self) -> &StartMarks {
        &self.marks
    }

    /// Uses of blocks as they are kept.
    pub(crate) fn accesses(uses: &[Use<'_>]) -> Vec<Declared> {
        let declared = |each: &Use<'_>| Declared {
            block: each.history.lock().block().map(BlockId::of),
            range: each.range.clone(),
            access: each.access,
        };
        uses.iter().map(declared).collect()
    }

    /// A submission begins; its stream is entered.
    pub(crate) fn begin(
        &self,
        stamp: Stamp,
        accesses: Vec<Declared>,
        hindrance: Option<&'static str>,
        host: &HostClock,
    ) {
        // A submission that comes after this one begins later, since it has waited until this one was submitted.
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.kept(stamp.stream);
        kept.forget_up_to(host.at(stamp.stream));
        if kept.records.len() == KEPT
            && let Some(oldest) = kept.records.pop_front()
        {
            kept.unknown = oldest.stamp.number;
        }
        kept.records.push_back(Record::new(stamp, sequence, accesses, hindrance));
    }

    /// Marks the beginning of a submission, in front of the first part of its work.
    pub(crate) fn mark(&self, driver: &dyn Driver, stream: StreamId, lane: &StreamState) -> Result<()> {
        let number = lane.planned();
        // Held until the mark is queued: another thread may be queueing another part.
        let mut kept = self.kept(lane.key);
        if kept.marked < number {
            self.marks.set(driver, stream, lane.key.index(), number)?;
            kept.marked = number;
        }
        Ok(())
    }

    /// A part of a submission is queued.
    pub(crate) fn note(&self, lane: &StreamState, number: u64, command: &Command<'_>) {
        let mut kept = self.kept(lane.key);
        // What is queued past the order belongs to none of its submissions.
        let inside = lane.submitted() < number;
        match kept.records.back_mut().filter(|record| inside && record.stamp.number == number) {
            Some(record) => record.add(command, &self.variables),
            None => kept.unknown = number,
        }
    }

    /// A call that says something about code was answered.
    pub(crate) fn learn(&self, call: &Call<'_>, answer: &Answer<'_>) {
        match (call, answer) {
            (Call::Load { image }, Answer::Module(module)) => self.variables.loaded(*module, image),
            (Call::Function { module, .. }, Answer::Function(function)) => {
                self.variables.found(*module, function.id);
            }
            _ => {}
        }
    }

    /// The caller is told that a submission failed; its stream is still entered.
    pub(crate) fn fail(&self, stamp: Stamp) {
        let mut kept = self.kept(stamp.stream);
        if let Some(record) = kept.records.back_mut().filter(|record| record.stamp == stamp) {
            record.hinder("its caller was told that it failed");
        }
    }

    /// Forgets what is known to be done.
    pub(crate) fn forget_up_to(&self, stream: StreamKey, number: u64) {
        self.kept(stream).forget_up_to(number);
    }

    /// The latest submission of a stream that may have started, by what its word says: everything before it is done, and nothing behind it
    /// had started. None if the word cannot be what a mark left there.
    pub(crate) fn started(&self, lane: &StreamState, values: &MarkValues) -> Option<u64> {
        let kept = self.kept(lane.key);
        let number = values.number(lane.key.index(), kept.marked)?;
        let is_record = || kept.records.iter().any(|record| record.stamp.number == number);
        (number == kept.done || number > kept.done && is_record()).then_some(number)
    }

    /// What lies beyond a clock, in the order of submission; none if that is not known of all of it.
    pub(crate) fn unfinished(&self, known: &StreamClock) -> Option<Vec<Record>> {
        let mut unfinished = Vec::new();
        for stream in StreamKey::all() {
            let kept = self.kept(stream);
            if kept.unknown > known.at(stream) {
                return None;
            }
            let beyond = kept.records.iter().filter(|record| !known.covers(record.stamp));
            unfinished.extend(beyond.cloned());
        }
        unfinished.sort_unstable_by_key(|record| record.sequence);
        Some(unfinished)
    }

    /// Begins anew: what was kept is over, and the words say so. No thread submits meanwhile.
    pub(crate) fn clear(&self, device: &dyn Driver) -> Result<()> {
        let marked: Vec<u64> = StreamKey::all()
            .map(|stream| {
                let mut kept = self.kept(stream);
                kept.records.clear();
                kept.done = kept.marked;
                kept.unknown = 0;
                kept.marked
            })
            .collect();
        self.marks.write(device, &marked)
    }

    fn kept(&self, stream: StreamKey) -> MutexGuard<'_, StreamLog> {
        self.streams[stream.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
