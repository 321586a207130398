//! All waiters for work of one device.

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::EventId;
use kiln_order::{HostClock, MAX_STREAMS, Point, Stamp, StreamKey};

use super::stream_waiters::Queue;
use crate::error::Result;
use crate::wake::ReplySlot;

/// How the work ended.
pub(crate) type Outcome = std::result::Result<(), kiln_driver::Error>;

/// A waiter.
pub(crate) enum Waiter {
    /// A future.
    Task(Arc<ReplySlot<Outcome>>),
    /// A function.
    Callback(Box<dyn FnOnce(Result<()>) + Send>),
}

/// The waiters of all streams.
pub(super) struct Pending {
    queues: Vec<Queue>,
    next_id: u64,
    len: usize,
}

/// What to look at: the first in line of a stream.
#[derive(Clone, Copy)]
pub(super) struct Front {
    pub(super) stamp: Stamp,
    /// The event that tells; none if one has to be found.
    pub(super) event: Option<EventId>,
    /// Since when it is the first.
    pub(super) since: Duration,
}

/// A place in line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    stamp: Stamp,
    id: u64,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self { queues: (0..MAX_STREAMS).map(|_| Queue::default()).collect(), next_id: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, stamp: Stamp, point: Option<Point>, waiter: Waiter) -> Place {
        self.next_id += 1;
        let place = Place { stamp, id: self.next_id };
        if let Some(queue) = self.queues.get_mut(stamp.stream.index()) {
            queue.insert(stamp.number, place.id, waiter);
            if let Some(point) = point {
                queue.keep(point);
            }
            self.len += 1;
        }
        place
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Waiter> {
        let removed = self.queues.get_mut(place.stamp.stream.index())?.remove(place.stamp.number, place.id);
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// The first in line of every stream with waiters.
    pub(super) fn fronts(&mut self, now: Duration) -> Vec<Front> {
        let fronts = self.queues.iter_mut().enumerate().filter_map(|(index, queue)| {
            let stamp = queue.first(StreamKey::new(index).ok()?)?;
            let since = *queue.first_since.get_or_insert(now);
            Some(Front { stamp, event: queue.event(), since })
        });
        fronts.collect()
    }

    /// Keeps a point that was found for the first in line.
    pub(super) fn keep(&mut self, point: Point) {
        if let Some(queue) = self.queues.get_mut(point.stamp.stream.index()) {
            queue.keep(point);
        }
    }

    /// The point of an event that was looked at.
    pub(super) fn point(&self, stream: StreamKey, event: EventId) -> Option<Point> {
        self.queues.get(stream.index())?.point(event).cloned()
    }

    /// Takes out all waiters whose work is known to be done.
    pub(super) fn take_done(&mut self, host: &HostClock) -> Vec<Waiter> {
        self.taking(|queue, stream, done| queue.take_done(stream, host, done))
    }

    /// Takes all waiters out.
    pub(super) fn take_all(&mut self) -> Vec<Waiter> {
        self.taking(|queue, _, all| queue.take_all(all))
    }

    /// Takes out those of a stream up to a number.
    pub(super) fn take_up_to(&mut self, upto: Stamp) -> Vec<Waiter> {
        self.taking(|queue, stream, covered| {
            if stream == upto.stream {
                queue.take_up_to(upto.number, covered);
            }
        })
    }

    fn taking(&mut self, take: impl Fn(&mut Queue, StreamKey, &mut Vec<Waiter>)) -> Vec<Waiter> {
        let mut taken = Vec::new();
        for (index, queue) in self.queues.iter_mut().enumerate() {
            if let Ok(stream) = StreamKey::new(index) {
                take(queue, stream, &mut taken);
            }
        }
        self.len -= taken.len();
        taken
    }
}
