//! Waits of streams for each other.

use std::collections::BTreeMap;

use super::device_clocks::DeviceClocks;
use super::name_table::{LineId, NameId};
use super::ranking::Ranking;
use super::timeline::{Timeline, Waiter, Work, give_back};
use crate::record::{TraceStamp, TraceStream, WaitReason};

/// One wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) writer: TraceStamp,
    pub(super) covers: u64,
    pub(super) reason: WaitReason,
    pub(super) block: Option<(u64, NameId)>,
    /// Which line asked for it.
    pub(super) line: Option<LineId>,
    pub(super) time_ns: u64,
}

/// The waits of each stream, with the number of the submission that waits.
#[derive(Default)]
pub(super) struct Waits {
    streams: BTreeMap<TraceStream, Vec<(u64, Wait)>>,
    count: usize,
}

/// What tells stalls apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct StallKey {
    waiter: (NameId, Option<LineId>),
    writer: Option<(NameId, Option<LineId>)>,
    tag: Option<NameId>,
    reason: u8,
    /// Which line asked for it.
    line: Option<LineId>,
}

/// What is known of one stall.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallCase {
    pub(super) waiter: Work,
    pub(super) wait: Wait,
    pub(super) writer: Option<Work>,
    /// The last of the work that was waited for as well.
    pub(super) unrelated: Option<Work>,
    pub(super) unrelated_ns: u64,
}

/// The stalls of each device.
pub(super) type Stalls = BTreeMap<u32, Ranking<StallKey, StallCase>>;

impl Wait {
    /// The submission that is waited for in truth.
    pub(super) fn covered(&self) -> TraceStamp {
        TraceStamp { number: self.covers.max(self.writer.number), ..self.writer }
    }
}

impl Waits {
    pub(super) fn add(&mut self, waiter: TraceStamp, wait: Wait) {
        self.streams.entry(waiter.stream).or_default().push((waiter.number, wait));
        self.count += 1;
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn sort(&mut self) {
        self.streams.values_mut().for_each(|waits| waits.sort_by_key(|(number, _)| *number));
    }

    /// The waits of a submission.
    pub(super) fn of(&self, waiter: TraceStamp) -> impl Iterator<Item = &Wait> {
        let waits = self.streams.get(&waiter.stream).map(Vec::as_slice).unwrap_or_default();
        let first = waits.partition_point(|(number, _)| *number < waiter.number);
        let own = waits.iter().skip(first).take_while(move |(number, _)| *number == waiter.number);
        own.map(|(_, wait)| wait)
    }

    /// Adds how long the streams of each device waited for others, as far as the work that waited is being looked at.
    pub(super) fn settle(&self, timeline: &Timeline, clocks: &DeviceClocks, devices: &mut Stalls) {
        for (stream, waits) in &self.streams {
            let mut rest = waits.as_slice();
            while let Some((number, _)) = rest.first() {
                let waiter = timeline.from(TraceStamp { stream: *stream, number: *number });
                // Waits that were queued alone belong to the work that follows, as its own do.
                let until = match &waiter {
                    Waiter::Settling(work, _) => work.stamp.number.max(*number),
                    _ => *number,
                };
                let (own, later) = rest.split_at(rest.partition_point(|(number, _)| *number <= until));
                rest = later;
                let Waiter::Settling(work, before) = waiter else { continue };
                if let Some((key, ns, case)) = stall(work, before, own, (timeline, clocks)) {
                    devices.entry(stream.device).or_default().add(key, ns, case);
                }
            }
        }
    }

    /// Forgets the waits of work that was looked at, and of very many others those that were queued first: their work is not in the recording.
    pub(super) fn forget(&mut self, timeline: &Timeline, most: usize) {
        for (stream, waits) in &mut self.streams {
            waits.retain(|(number, _)| {
                let waiter = TraceStamp { stream: *stream, number: *number };
                matches!(timeline.from(waiter), Waiter::Awaited)
            });
        }
        let mut times: Vec<u64> = self.streams.values().flatten().map(|(_, wait)| wait.time_ns).collect();
        if let Some(spare) = times.len().checked_sub(most).filter(|spare| *spare > 0) {
            let (_, from, _) = times.select_nth_unstable(spare);
            // Behind that time, so that many of one time go, too.
            self.streams.values_mut().for_each(|waits| waits.retain(|(_, wait)| wait.time_ns > *from));
        }
        self.streams.values_mut().for_each(give_back);
        self.streams.retain(|_, waits| !waits.is_empty());
        self.count = self.streams.values().map(Vec::len).sum();
    }
}

/// What a submission waited for longest, if that cost time.
fn stall(
    work: &Work,
    before: Option<&Work>,
    waits: &[(u64, Wait)],
    (timeline, clocks): (&Timeline, &DeviceClocks),
) -> Option<(StallKey, u64, StallCase)> {
    let ran = work.device?;
    // From here on nothing but the wait kept it.
    let before = before.and_then(|before| before.device).map_or(0, |span| span.end_ns);
    let ready = work.host.end_ns.max(before);
    let is_comparable =
        |(_, wait): &&(u64, Wait)| clocks.are_one(work.stamp.stream.device, wait.writer.stream.device);
    let ends = waits.iter().filter(is_comparable).filter_map(|(_, wait)| {
        let last = timeline.up_to(wait.covered())?;
        Some((last.device?.end_ns.min(ran.begin_ns), wait, last))
    });
    let (end, wait, last) = ends.max_by_key(|(end, ..)| *end).filter(|(end, ..)| *end > ready)?;
    let writer = timeline.exactly(wait.writer).copied();
    let needed = writer.and_then(|writer| writer.device).map_or(ready, |span| span.end_ns.max(ready));
    // Where what was needed is not in the recording, what came after it is not known either.
    let is_unrelated = writer.is_some_and(|writer| writer.device.is_some()) && last.stamp != wait.writer;
    let case = StallCase {
        waiter: *work,
        wait: *wait,
        writer,
        unrelated: is_unrelated.then_some(*last),
        unrelated_ns: if is_unrelated { end.saturating_sub(needed) } else { 0 },
    };
    let key = StallKey {
        waiter: (work.name, work.line),
        writer: writer.map(|writer| (writer.name, writer.line)),
        tag: wait.block.map(|(_, tag)| tag),
        reason: wait.reason as u8,
        line: wait.line,
    };
    Some((key, end - ready, case))
}
