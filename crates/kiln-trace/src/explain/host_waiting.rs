//! When threads of the program waited for devices.

use std::collections::BTreeMap;

use super::name_table::LineId;
use super::ranking::Ranking;
use super::timeline::{Timeline, Work, give_back};
use crate::record::{HostWaitCause, TimeSpan, TraceStamp};

/// One wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostWait {
    pub(super) cause: HostWaitCause,
    pub(super) line: Option<LineId>,
    pub(super) awaited: Option<TraceStamp>,
    pub(super) span: TimeSpan,
}

/// The waits on one clock by cause and line.
pub(super) type LineRanking = Ranking<(u8, Option<LineId>), HostCase>;

/// The waits of each thread on each clock; a thread is in one at a time.
#[derive(Default)]
pub(super) struct HostWaiting {
    threads: BTreeMap<(u32, u32), Vec<HostWait>>,
    by_line: BTreeMap<u32, LineRanking>,
    count: usize,
}

/// What is known of one wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostCase {
    pub(super) cause: HostWaitCause,
    pub(super) awaited: Option<(TraceStamp, Option<Work>)>,
}

/// What was found for a part of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitedPart {
    pub(super) cause: HostWaitCause,
    pub(super) line: Option<LineId>,
    pub(super) ns: u64,
}

impl HostWaiting {
    /// A wait of a thread, on a clock.
    pub(super) fn add(&mut self, (clock, thread): (u32, u32), wait: HostWait) {
        let case = HostCase { cause: wait.cause, awaited: wait.awaited.map(|awaited| (awaited, None)) };
        self.by_line.entry(clock).or_default().add((wait.cause as u8, wait.line), wait.span.ns(), case);
        self.threads.entry((clock, thread)).or_default().push(wait);
        self.count += 1;
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn sort(&mut self) {
        self.threads.values_mut().for_each(|waits| waits.sort_by_key(|wait| wait.span.begin_ns));
    }

    /// Finds the work that was waited for, as long as it is known.
    pub(super) fn settle(&mut self, timeline: &Timeline) {
        for (stamp, work) in
            self.by_line.values_mut().flat_map(Ranking::cases_mut).filter_map(|case| case.awaited.as_mut())
        {
            *work = work.or_else(|| timeline.exactly(*stamp).copied());
        }
    }

    /// Forgets the waits that ended before a time, and of very many those that ended first.
    pub(super) fn forget(&mut self, before_ns: u64, most: usize) {
        let ends = self.threads.values().flatten().map(|wait| wait.span.end_ns);
        let mut ends: Vec<u64> = ends.filter(|end| *end >= before_ns).collect();
        let before_ns = match ends.len().checked_sub(most).filter(|spare| *spare > 0) {
            // Behind that time, so that many of one time go, too.
            Some(spare) => ends.select_nth_unstable(spare).1.saturating_add(1),
            None => before_ns,
        };
        self.threads.values_mut().for_each(|waits| waits.retain(|wait| wait.span.end_ns >= before_ns));
        self.threads.values_mut().for_each(give_back);
        self.threads.retain(|_, waits| !waits.is_empty());
        self.count = self.threads.values().map(Vec::len).sum();
    }

    /// Waits by cause and line, of each clock.
    pub(super) fn by_line(self) -> BTreeMap<u32, LineRanking> {
        self.by_line
    }

    /// The waits in which a time of a clock without work was spent. Threads that do not submit may wait all the time; of those that waited, the one counts that was in
    /// waits for most of it, so that a time is counted once. What is left of the time, that thread did something else.
    pub(super) fn during(&self, clock: u32, from: u64, to: u64) -> impl Iterator<Item = WaitedPart> {
        let within =
            move |waits: &&Vec<HostWait>| waits_within(waits, from, to).map(|part| part.ns).sum::<u64>();
        // The first of several that waited for the same time.
        let of_clock = self.threads.range((clock, 0)..=(clock, u32::MAX)).map(|(_, waits)| waits);
        let longest = of_clock.rev().max_by_key(within);
        longest.into_iter().flat_map(move |waits| waits_within(waits, from, to))
    }
}

/// The parts of a time that a thread spent in its waits, which are sorted.
fn waits_within(waits: &[HostWait], from: u64, to: u64) -> impl Iterator<Item = WaitedPart> {
    let first = waits.partition_point(|wait| wait.span.end_ns < from);
    let touching = waits.iter().skip(first).take_while(move |wait| wait.span.begin_ns < to);
    let part = move |wait: &HostWait| {
        let ns = wait.span.within(from, to);
        WaitedPart { cause: wait.cause, line: wait.line, ns }
    };
    touching.map(part).filter(|part| part.ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_split_where_waits_begin_and_end() {
        let mut waiting = HostWaiting::default();
        let wait = |begin_ns, end_ns| HostWait {
            cause: HostWaitCause::Synchronize,
            line: None,
            awaited: None,
            span: TimeSpan { begin_ns, end_ns },
        };
        waiting.add((0, 0), wait(300, 310));
        waiting.add((0, 0), wait(10, 100));
        waiting.add((0, 1), wait(300, 305));
        waiting.sort();
        let parts_of = |waiting: &HostWaiting, from, to| {
            waiting.during(0, from, to).map(|part| part.ns).collect::<Vec<_>>()
        };
        assert_eq!(parts_of(&waiting, 90, 200), [10]);
        assert_eq!(parts_of(&waiting, 90, 400), [10, 10]);
        assert_eq!(parts_of(&waiting, 250, 400), [10]);
        assert_eq!(parts_of(&waiting, 20, 30), [10]);
        assert!(parts_of(&waiting, 150, 250).is_empty());
        waiting.add((1, 0), wait(20, 90));
        assert_eq!(parts_of(&waiting, 20, 30), [10], "waits on another clock are no part of it");
    }
}
