//! When threads of the program waited for devices.

use std::collections::BTreeMap;

use super::name_table::LineId;
use super::ranking::Ranking;
use crate::record::{HostWaitCause, TimeSpan, TraceStamp};

/// One wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostWait {
    pub(super) cause: HostWaitCause,
    pub(super) line: Option<LineId>,
    pub(super) awaited: Option<TraceStamp>,
    pub(super) span: TimeSpan,
}

/// The waits of each thread; a thread is in one at a time.
#[derive(Default)]
pub(super) struct HostWaiting {
    threads: BTreeMap<u32, Vec<HostWait>>,
}

/// What was found for a part of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitedPart {
    pub(super) cause: HostWaitCause,
    pub(super) line: Option<LineId>,
    pub(super) ns: u64,
}

impl HostWaiting {
    pub(super) fn add(&mut self, thread: u32, wait: HostWait) {
        self.threads.entry(thread).or_default().push(wait);
    }

    pub(super) fn sort(&mut self) {
        self.threads.values_mut().for_each(|waits| waits.sort_by_key(|wait| wait.span.begin_ns));
    }

    /// Waits by cause and line.
    pub(super) fn by_line(&self) -> Ranking<(u8, Option<LineId>), HostWait> {
        let mut ranking = Ranking::new();
        for wait in self.threads.values().flatten() {
            ranking.add((wait.cause as u8, wait.line), wait.span.ns(), *wait);
        }
        ranking
    }

    /// The wait to which a time without work is due. A thread that was in a wait when the time began had queued nothing further, so
    /// that all of the time is due to that wait. Otherwise the wait counts that took most of it.
    pub(super) fn during(&self, from: u64, to: u64) -> Option<WaitedPart> {
        let mut best: Option<WaitedPart> = None;
        for waits in self.threads.values() {
            let first = waits.partition_point(|wait| wait.span.end_ns < from);
            for wait in waits.iter().skip(first).take_while(|wait| wait.span.begin_ns < to) {
                let was_in_it = wait.span.begin_ns <= from && wait.span.end_ns >= from && wait.span.ns() > 0;
                let ns = if was_in_it { to - from } else { wait.span.within(from, to) };
                if best.is_none_or(|best| ns > best.ns) && ns > 0 {
                    best = Some(WaitedPart { cause: wait.cause, line: wait.line, ns });
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_was_under_way_counts_for_all_of_the_time() {
        let mut waiting = HostWaiting::default();
        let wait = |begin_ns, end_ns| HostWait {
            cause: HostWaitCause::Synchronize,
            line: None,
            awaited: None,
            span: TimeSpan { begin_ns, end_ns },
        };
        waiting.add(0, wait(10, 100));
        waiting.add(0, wait(300, 310));
        waiting.sort();
        assert_eq!(waiting.during(90, 200).map(|part| part.ns), Some(110));
        assert_eq!(waiting.during(250, 400).map(|part| part.ns), Some(10));
        assert!(waiting.during(150, 250).is_none());
    }
}
