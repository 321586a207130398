//! Implements `Order` over a driver without a runtime: submissions have the driver's numbers, and dependencies are made with events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Command, Driver, Error, EventId, EventRequest, Object, Refusal, Result, StreamId, Submission, Timeout,
    WaitTarget, Waited,
};

use crate::clock_table::ClockTable;
use crate::order_trait::Order;
use crate::stamp::Stamp;
use crate::stream_key::{MAX_STREAMS, StreamKey, StreamRef};

/// Events kept for the next edge.
const KEPT_EVENTS: usize = 64;

/// An [`Order`] over a driver, for programs that use memory without a runtime.
///
/// Work has to be submitted through [`submit`](Self::submit), so that its number is known.
pub struct DriverOrder {
    driver: Arc<dyn Driver>,
    /// The newest submission under each key, read without a lock.
    latest: [AtomicU64; MAX_STREAMS],
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    clocks: ClockTable,
    /// By key; none where the stream was removed.
    streams: Vec<Option<Known>>,
    events: Vec<EventId>,
}

/// A stream of the order.
#[derive(Clone, Copy)]
struct Known {
    id: StreamId,
    /// What was submitted under its key before it had the key. The driver numbers every stream from 1 on.
    before: u64,
}

impl DriverOrder {
    /// An order of a driver's streams.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, latest: std::array::from_fn(|_| AtomicU64::new(0)), books: Mutex::default() }
    }

    /// Gives a stream its key, which may be that of a stream that was [removed](Self::remove).
    ///
    /// # Errors
    /// Refused past [`MAX_STREAMS`] at once.
    pub fn add(&self, id: StreamId) -> Result<StreamRef> {
        let mut books = self.books();
        let free = books.streams.iter().position(Option::is_none).unwrap_or(books.streams.len());
        let key = StreamKey::new(free).map_err(|_| {
            let limit = Refusal::Limit { what: "streams of one order at once", limit: MAX_STREAMS as u64 };
            Error::refused("create_stream", limit)
        })?;
        let known = Some(Known { id, before: self.latest(key) });
        match books.streams.get_mut(free) {
            Some(place) => *place = known,
            None => books.streams.push(known),
        }
        Ok(StreamRef::new(key, id))
    }

    /// Forgets a stream whose work is done and which is about to be destroyed.
    ///
    /// # Errors
    /// If it is not a stream of this order; if its work could not be waited for.
    pub fn remove(&self, stream: StreamRef) -> Result<()> {
        self.known(stream, "destroy")?;
        let latest = self.latest(stream.key());
        let _ = self.driver.wait(WaitTarget::Stream(stream.id()), Timeout::Never)?;
        let mut books = self.books();
        books.clocks.complete(Stamp { stream: stream.key(), number: latest });
        if let Some(place) = books.streams.get_mut(stream.key().index()) {
            *place = None;
        }
        Ok(())
    }

    /// Queues a command and returns its stamp.
    ///
    /// # Errors
    /// If it is not a stream of this order; as for [`Driver::submit`].
    pub fn submit(&self, stream: StreamRef, command: &Command<'_>) -> Result<Stamp> {
        let known = self.known(stream, "submit")?;
        let Submission(number) = self.driver.submit(stream.id(), command)?;
        let stamp = Stamp { stream: stream.key(), number: known.before + number };
        self.note(stamp);
        Ok(stamp)
    }

    /// A submission was made.
    fn note(&self, stamp: Stamp) {
        self.books().clocks.submit(stamp);
        self.latest[stamp.stream.index()].fetch_max(stamp.number, Ordering::Release);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream with a key; none if it was removed.
    fn at(&self, key: StreamKey) -> Option<Known> {
        self.books().streams.get(key.index()).copied().flatten()
    }

    /// A stream that this order gave out and still has.
    fn known(&self, stream: StreamRef, call: &'static str) -> Result<Known> {
        self.at(stream.key()).filter(|known| known.id == stream.id()).ok_or_else(|| {
            let what = format!("{} is not a stream of this order", stream.id());
            Error::invalid(call, what, "use a stream that `add` gave out and that was not removed")
        })
    }

    fn take_event(&self) -> Result<EventId> {
        let kept = self.books().events.pop();
        kept.map_or_else(|| self.driver.create_event(EventRequest::Plain), Ok)
    }

    fn keep_event(&self, event: EventId) {
        let mut books = self.books();
        if books.events.len() < KEPT_EVENTS {
            books.events.push(event);
            return;
        }
        drop(books);
        let _ = self.driver.destroy(Object::Event(event));
    }

    fn submit_edge(
        &self,
        before: StreamId,
        event: EventId,
        after: StreamId,
    ) -> Result<(Submission, Submission)> {
        let signalled = self.driver.submit(before, &Command::Signal(event))?;
        let waited = self.driver.submit(after, &Command::Wait(event))?;
        Ok((signalled, waited))
    }
}

impl Order for DriverOrder {
    fn latest(&self, stream: StreamKey) -> u64 {
        self.latest[stream.index()].load(Ordering::Acquire)
    }

    fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool {
        self.books().clocks.is_ordered(stream, stamp)
    }

    fn is_complete(&self, stamp: Stamp) -> bool {
        self.books().clocks.is_complete(stamp)
    }

    fn refresh(&self, stream: StreamKey) -> Result<()> {
        let Some(known) = self.at(stream) else { return Ok(()) };
        let progress = self.driver.progress(known.id)?;
        self.books().clocks.complete(Stamp { stream, number: known.before + progress.completed.0 });
        Ok(())
    }

    fn wait_on(&self, stream: StreamKey, stamp: Stamp) -> Result<()> {
        let (Some(before), Some(after)) = (self.at(stamp.stream), self.at(stream)) else { return Ok(()) };
        if self.is_ordered(stream, stamp) {
            return Ok(());
        }
        let event = self.take_event()?;
        let edge = self.submit_edge(before.id, event, after.id);
        // The wait holds on to the signal it saw, so the event can be signalled again.
        self.keep_event(event);
        let (Submission(signalled), Submission(waited)) = edge?;
        let signal = Stamp { stream: stamp.stream, number: before.before + signalled };
        self.note(signal);
        self.books().clocks.order(stream, signal);
        self.note(Stamp { stream, number: after.before + waited });
        Ok(())
    }

    fn wait(&self, stamp: Stamp, timeout: Timeout) -> Result<Waited> {
        let Some(known) = self.at(stamp.stream) else { return Ok(Waited::Done) };
        let latest = self.latest(stamp.stream);
        let waited = self.driver.wait(WaitTarget::Stream(known.id), timeout)?;
        if waited.is_done() {
            self.books().clocks.complete(Stamp { stream: stamp.stream, number: latest });
        }
        self.refresh(stamp.stream)?;
        Ok(if self.is_complete(stamp) { Waited::Done } else { waited })
    }
}

impl Drop for DriverOrder {
    fn drop(&mut self) {
        let events = std::mem::take(&mut self.books().events);
        for event in events {
            let _ = self.driver.destroy(Object::Event(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock_driver::QueueDriver;

    #[test]
    fn one_stream_too_many_is_refused_and_a_removed_one_makes_room() {
        let driver = QueueDriver::new();
        let order = DriverOrder::new(driver.clone());
        let streams: Vec<_> = (0..MAX_STREAMS).map(|_| order.add(driver.stream()).unwrap()).collect();
        let error = order.add(driver.stream()).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Limit { limit: 64, .. })), "{error}");
        let gone = streams[7];
        let event = driver.create_event(EventRequest::Plain).unwrap();
        let last = order.submit(gone, &Command::Signal(event)).unwrap();
        order.remove(gone).unwrap();
        assert!(order.is_complete(last));
        let next = order.add(driver.stream()).unwrap();
        assert_eq!(next.key(), gone.key());
        let first = order.submit(next, &Command::Signal(event)).unwrap();
        assert_eq!((first.number, order.latest(next.key())), (last.number + 1, last.number + 1));
        assert!(!order.is_complete(first), "what the last stream did says nothing about the next");
        assert!(order.submit(gone, &Command::Signal(event)).is_err(), "it was removed");
        assert!(order.remove(gone).is_err());
    }

    #[test]
    fn a_stream_of_another_order_is_refused() {
        let (driver, other) = (QueueDriver::new(), QueueDriver::new());
        let (order, elsewhere) = (DriverOrder::new(driver.clone()), DriverOrder::new(other.clone()));
        order.add(driver.stream()).unwrap();
        let foreign = elsewhere.add(other.stream()).unwrap();
        let event = driver.create_event(EventRequest::Plain).unwrap();
        let error = order.submit(foreign, &Command::Signal(event)).unwrap_err();
        assert!(error.to_string().contains("not a stream of this order"), "{error}");
    }
}
