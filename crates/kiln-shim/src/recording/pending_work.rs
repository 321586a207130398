//! Work of one stream that was submitted and not written yet: on a simulated device it is written when it is known when it ran.

use std::collections::VecDeque;

use kiln_trace::{SubmissionKind, SubmissionRecord, TimeSpan};

/// Work that waits for its time; more is written without one.
const MOST_WAITING: usize = 65_536;

/// The work of one stream, in the order of its numbers.
#[derive(Default)]
pub(super) struct PendingWork {
    waiting: VecDeque<SubmissionRecord<'static>>,
}

impl PendingWork {
    /// Adds work; what has to be written now for want of room.
    pub(super) fn push(&mut self, work: SubmissionRecord<'static>) -> Option<SubmissionRecord<'static>> {
        let oldest = if self.waiting.len() >= MOST_WAITING { self.waiting.pop_front() } else { None };
        self.waiting.push_back(work);
        oldest
    }

    /// A submission, or a node of one that is a graph, ran in a time: all work that is done by that.
    pub(super) fn ran(&mut self, number: u64, span: TimeSpan) -> Vec<SubmissionRecord<'static>> {
        // A stream runs in order.
        let before = self.waiting.partition_point(|work| work.stamp.number < number);
        let mut done: Vec<SubmissionRecord<'static>> = self.waiting.drain(..before).collect();
        if let Some(work) = self.waiting.front_mut().filter(|work| work.stamp.number == number) {
            let known = work.device.unwrap_or(span);
            work.device =
                Some(TimeSpan::new(known.begin_ns.min(span.begin_ns), known.end_ns.max(span.end_ns)));
            // More nodes of a graph may follow.
            if work.kind != SubmissionKind::Graph {
                done.extend(self.waiting.pop_front());
            }
        }
        done
    }

    /// All that is left: nothing runs any more.
    pub(super) fn rest(&mut self) -> Vec<SubmissionRecord<'static>> {
        self.waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use kiln_trace::{TraceStamp, TraceStream};

    use super::*;

    fn work(number: u64, kind: SubmissionKind) -> SubmissionRecord<'static> {
        let stamp = TraceStamp { stream: TraceStream { device: 0, stream: 1 }, number };
        SubmissionRecord { stamp, kind, ..SubmissionRecord::default() }
    }

    #[test]
    fn work_is_written_in_order_and_a_graph_when_all_its_nodes_ran() {
        let mut pending = PendingWork::default();
        for (number, kind) in
            [(1, SubmissionKind::Copy), (3, SubmissionKind::Graph), (4, SubmissionKind::Kernel)]
        {
            assert!(pending.push(work(number, kind)).is_none());
        }
        let numbers = |done: Vec<SubmissionRecord<'_>>| -> Vec<(u64, Option<TimeSpan>)> {
            done.into_iter().map(|work| (work.stamp.number, work.device)).collect()
        };
        assert_eq!(numbers(pending.ran(1, TimeSpan::new(0, 5))), [(1, Some(TimeSpan::new(0, 5)))]);
        assert_eq!(numbers(pending.ran(3, TimeSpan::new(7, 9))), []);
        assert_eq!(numbers(pending.ran(3, TimeSpan::new(6, 8))), []);
        let both = [(3, Some(TimeSpan::new(6, 9))), (4, Some(TimeSpan::new(9, 12)))];
        assert_eq!(numbers(pending.ran(4, TimeSpan::new(9, 12))), both);
        pending.push(work(9, SubmissionKind::Fill));
        assert_eq!(numbers(pending.rest()), [(9, None)]);
    }

    #[test]
    fn work_that_finds_no_room_is_written_without_a_time() {
        let mut pending = PendingWork::default();
        for number in 1..=MOST_WAITING as u64 {
            assert!(pending.push(work(number, SubmissionKind::Kernel)).is_none());
        }
        let left = pending.push(work(1 << 40, SubmissionKind::Kernel)).map(|work| work.stamp.number);
        assert_eq!(left, Some(1));
    }
}
