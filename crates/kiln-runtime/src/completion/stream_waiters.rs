//! The waiters for work of one stream, in the order of submission.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kiln_driver::EventId;
use kiln_order::{HostClock, Point, Stamp, StreamKey};

use super::waiters::Waiter;

/// Events one stream holds for its waiters. Past it a waiter shares the event of a later one.
const MAX_POINTS: usize = 64;

/// The waiters of one stream.
#[derive(Default)]
pub(super) struct Queue {
    /// By number, then by who came first.
    waiters: BTreeMap<(u64, u64), Waiter>,
    /// Recorded points that cover waiters, by number.
    points: VecDeque<Point>,
    /// When the first in line became the first, on the device's clock.
    pub(super) first_since: Option<Duration>,
}

impl Queue {
    pub(super) fn insert(&mut self, number: u64, id: u64, waiter: Waiter) {
        self.waiters.insert((number, id), waiter);
    }

    /// Keeps a point whose event is done when a waiter's work is.
    pub(super) fn keep(&mut self, point: Point) {
        let after = self.points.partition_point(|known| known.stamp.number < point.stamp.number);
        let known = self.points.get(after).is_some_and(|known| known.stamp == point.stamp);
        if !known && self.points.len() < MAX_POINTS {
            self.points.insert(after, point);
        }
    }

    pub(super) fn remove(&mut self, number: u64, id: u64) -> Option<Waiter> {
        let removed = self.waiters.remove(&(number, id));
        if self.waiters.is_empty() {
            self.clear();
        }
        removed
    }

    /// What the first in line waits for.
    pub(super) fn first(&self, stream: StreamKey) -> Option<Stamp> {
        self.waiters.keys().next().map(|(number, _)| Stamp { stream, number: *number })
    }

    /// The event to look at: the earliest that covers the first in line.
    pub(super) fn event(&self) -> Option<EventId> {
        let (first, _) = self.waiters.keys().next()?;
        let point = self.points.iter().find(|point| point.stamp.number >= *first)?;
        Some(point.event.event())
    }

    /// The point of an event.
    pub(super) fn point(&self, event: EventId) -> Option<&Point> {
        self.points.iter().find(|point| point.event.event() == event)
    }

    /// Takes out all waiters whose work is known to be done.
    pub(super) fn take_done(&mut self, stream: StreamKey, host: &HostClock, done: &mut Vec<Waiter>) {
        let before = done.len();
        while let Some(first) = self.first(stream)
            && host.covers(first)
            && let Some((_, waiter)) = self.waiters.pop_first()
        {
            done.push(waiter);
        }
        self.points.retain(|point| !host.covers(point.stamp));
        if done.len() > before {
            self.first_since = None;
        }
        if self.waiters.is_empty() {
            self.clear();
        }
    }

    /// Takes all waiters out.
    pub(super) fn take_all(&mut self, all: &mut Vec<Waiter>) {
        all.extend(std::mem::take(&mut self.waiters).into_values());
        self.clear();
    }

    /// Takes out those whom a point covers.
    pub(super) fn take_up_to(&mut self, number: u64, covered: &mut Vec<Waiter>) {
        while let Some(entry) = self.waiters.first_entry()
            && entry.key().0 <= number
        {
            covered.push(entry.remove());
        }
        self.points.retain(|point| point.stamp.number > number);
        self.first_since = None;
    }

    /// Events without waiters are given back.
    fn clear(&mut self) {
        self.points.clear();
        self.first_since = None;
    }
}
