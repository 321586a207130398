//! What is known to be ordered before what, from the calls alone.
//!
//! Each stream is a line of submissions. A wait joins the line of the event's stream into its own, from its own number
//! on; a host that waited knows everything up to there to be done. Joins are kept as places, not as finished clocks,
//! and are followed when the answer is needed: the answers of two threads that submit to one stream at once may be noted
//! in the wrong order, their numbers never lie.
//!
//! Everything here errs towards "ordered": what is missing from the notes can hide a violation but not invent one.

use std::collections::HashMap;

use crate::command::Submission;
use crate::handle::{EventId, StreamId};

/// A place on a stream's line: submission `n` stands at `2n`, what happened between `n` and `n + 1` at `2n + 1`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Point {
    pub(super) stream: StreamId,
    pub(super) at: u64,
}

impl Point {
    pub(super) fn of(stream: StreamId, submission: Submission) -> Self {
        Self { stream, at: submission.0.saturating_mul(2) }
    }
}

/// How far on each stream something reaches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reach(HashMap<StreamId, u64>);

impl Reach {
    pub(super) fn covers(&self, point: Point) -> bool {
        self.0.get(&point.stream).is_some_and(|at| *at >= point.at)
    }

    /// Whether it reaches further than before.
    fn extend_to(&mut self, point: Point) -> bool {
        let at = self.0.entry(point.stream).or_default();
        let further = *at < point.at;
        *at = point.at.max(*at);
        further
    }
}

/// The lines of all streams, the events between them, and what the host knows to be done.
#[derive(Debug, Default)]
pub(super) struct Order {
    lines: HashMap<StreamId, Line>,
    signals: HashMap<EventId, Point>,
    done: Reach,
}

#[derive(Debug, Default)]
struct Line {
    last: u64,
    /// From which number on, and what is joined in.
    joins: Vec<(u64, Point)>,
    destroyed: bool,
}

impl Order {
    pub(super) fn opened(&mut self, stream: StreamId) {
        self.lines.entry(stream).or_default();
    }

    pub(super) fn submitted(&mut self, stream: StreamId, submission: Submission) {
        let line = self.lines.entry(stream).or_default();
        line.last = line.last.max(submission.0);
    }

    pub(super) fn signalled(&mut self, event: EventId, point: Point) {
        let last = self.signals.entry(event).or_insert(point);
        if last.stream != point.stream || last.at < point.at {
            *last = point;
        }
    }

    /// A stream waits, from a submission on, for what an event meant when the wait was submitted.
    pub(super) fn joined(&mut self, stream: StreamId, submission: Submission, point: Point) {
        if !self.is_done(point) {
            self.lines.entry(stream).or_default().joins.push((submission.0, point));
        }
    }

    pub(super) fn signal_of(&self, event: EventId) -> Option<Point> {
        self.signals.get(&event).copied()
    }

    pub(super) fn forget_event(&mut self, event: EventId) {
        self.signals.remove(&event);
    }

    pub(super) fn forget_stream(&mut self, stream: StreamId) {
        if let Some(line) = self.lines.get_mut(&stream) {
            line.destroyed = true;
        }
        self.prune();
    }

    /// Behind everything submitted to a stream so far.
    pub(super) fn end_of(&self, stream: StreamId) -> Point {
        Point { stream, at: self.lines.get(&stream).map_or(1, |line| line.last.saturating_mul(2) + 1) }
    }

    /// Everything that is ordered before a point, the point included.
    pub(super) fn before(&self, point: Point) -> Reach {
        let mut reach = Reach::default();
        let mut open = vec![point];
        while let Some(point) = open.pop() {
            if !reach.extend_to(point) {
                continue;
            }
            let joins = self.lines.get(&point.stream).map_or(&[][..], |line| &line.joins);
            open.extend(joins.iter().filter(|(number, _)| number * 2 <= point.at).map(|(_, joined)| *joined));
        }
        reach
    }

    /// The host has seen that a point is done, and with it everything before.
    pub(super) fn host_saw(&mut self, point: Point) {
        let reach = self.before(point);
        for (stream, at) in reach.0 {
            self.done.extend_to(Point { stream, at });
        }
        self.prune();
    }

    pub(super) fn is_done(&self, point: Point) -> bool {
        self.done.covers(point) || !self.lines.contains_key(&point.stream)
    }

    /// Drops joins whose content is done anyway, and lines of streams that are gone and done.
    fn prune(&mut self) {
        let done = &self.done;
        let mut gone = Vec::new();
        for (stream, line) in &mut self.lines {
            line.joins.retain(|(_, joined)| !done.covers(*joined));
            let end = Point::of(*stream, Submission(line.last));
            if line.destroyed && (line.last == 0 || done.covers(end)) {
                gone.push(*stream);
            }
        }
        for stream in gone {
            self.lines.remove(&stream);
            self.done.0.remove(&stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::{DeviceKey, kind};
    use crate::slot_table::Slots;

    fn handles() -> ([StreamId; 3], EventId) {
        let key = DeviceKey::fresh();
        let streams = Slots::<kind::Stream, ()>::new(key);
        let events = Slots::<kind::Event, ()>::new(key);
        ([(); 3].map(|()| streams.insert(()).unwrap()), events.insert(()).unwrap())
    }

    #[test]
    fn a_chain_of_waits_reaches_through_and_not_past_the_signal() {
        let ([a, b, c], event) = handles();
        let mut order = Order::default();
        for (stream, number) in [(a, 1), (a, 2), (a, 3), (b, 1), (b, 2), (c, 1)] {
            order.submitted(stream, Submission(number));
        }
        order.signalled(event, Point::of(a, Submission(2)));
        order.joined(b, Submission(1), order.signal_of(event).unwrap());
        order.joined(c, Submission(1), Point::of(b, Submission(2)));
        let reach = order.before(order.end_of(c));
        assert!(reach.covers(Point::of(a, Submission(2))) && reach.covers(Point::of(b, Submission(2))));
        assert!(!reach.covers(Point::of(a, Submission(3))));
    }

    #[test]
    fn a_join_counts_from_its_own_number_on() {
        let ([a, b, _], _) = handles();
        let mut order = Order::default();
        order.submitted(a, Submission(1));
        order.submitted(b, Submission(2));
        order.joined(b, Submission(2), Point::of(a, Submission(1)));
        assert!(!order.before(Point::of(b, Submission(1))).covers(Point::of(a, Submission(1))));
        assert!(order.before(Point::of(b, Submission(2))).covers(Point::of(a, Submission(1))));
    }

    #[test]
    fn what_the_host_saw_stays_done_and_later_work_is_not() {
        let ([a, b, _], _) = handles();
        let mut order = Order::default();
        order.submitted(a, Submission(1));
        order.submitted(b, Submission(1));
        order.joined(b, Submission(1), Point::of(a, Submission(1)));
        order.host_saw(order.end_of(b));
        assert!(order.is_done(Point::of(a, Submission(1))));
        order.submitted(a, Submission(2));
        assert!(!order.is_done(Point::of(a, Submission(2))));
        order.forget_stream(a);
        assert!(!order.is_done(Point::of(a, Submission(2))), "destroying a stream ends nothing");
        order.host_saw(Point::of(a, Submission(2)));
        assert!(order.is_done(Point::of(a, Submission(2))) && !order.lines.contains_key(&a));
    }
}
