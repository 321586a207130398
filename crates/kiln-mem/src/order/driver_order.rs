//! An order kept over a driver: submissions are numbered as the driver numbers them, edges are made with events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{
    Command, Driver, EventId, EventRequest, Object, Result, StreamId, Submission, Timeout, WaitTarget, Waited,
};
use kiln_sync::ChunkedTable;

use super::{Clocks, Order};
use crate::stamp::{Stamp, StreamKey, StreamRef};

/// Events kept for the next edge.
const KEPT_EVENTS: usize = 64;

/// An [`Order`] over a driver, for callers who have none of their own.
///
/// Work has to be submitted through [`submit`](Self::submit), so that its number is known.
pub struct DriverOrder {
    driver: Arc<dyn Driver>,
    /// The newest submission of each stream, read without a lock.
    latest: ChunkedTable<AtomicU64>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    clocks: Clocks,
    streams: Vec<Option<StreamId>>,
    events: Vec<EventId>,
}

impl DriverOrder {
    /// An order of a driver's streams.
    pub fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, latest: ChunkedTable::new(), books: Mutex::default() }
    }

    /// Gives a stream its key.
    pub fn add(&self, id: StreamId) -> StreamRef {
        let mut books = self.books();
        books.streams.push(Some(id));
        StreamRef { key: StreamKey::new((books.streams.len() - 1) as u32), id }
    }

    /// Forgets a stream whose work is done and which is about to be destroyed.
    ///
    /// # Errors
    /// If its work could not be waited for.
    pub fn remove(&self, stream: StreamRef) -> Result<()> {
        let latest = self.latest(stream.key);
        let _ = self.driver.wait(WaitTarget::Stream(stream.id), Timeout::Never)?;
        let mut books = self.books();
        books.clocks.complete(Stamp { stream: stream.key, number: latest });
        if let Some(id) = books.streams.get_mut(stream.key.number() as usize) {
            *id = None;
        }
        Ok(())
    }

    /// Queues a command and returns its stamp.
    ///
    /// # Errors
    /// As for [`Driver::submit`].
    pub fn submit(&self, stream: StreamRef, command: &Command<'_>) -> Result<Stamp> {
        let Submission(number) = self.driver.submit(stream.id, command)?;
        let stamp = Stamp { stream: stream.key, number };
        self.note(stamp);
        Ok(stamp)
    }

    /// A submission was made.
    fn note(&self, stamp: Stamp) {
        self.books().clocks.submit(stamp);
        let latest = self.latest.get_or_make(stamp.stream.number(), AtomicU64::default);
        latest.fetch_max(stamp.number, Ordering::Release);
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, stream: StreamKey) -> Option<StreamId> {
        self.books().streams.get(stream.number() as usize).copied().flatten()
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
        self.latest.get(stream.number()).map_or(0, |latest| latest.load(Ordering::Acquire))
    }

    fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool {
        self.books().clocks.is_ordered(stream, stamp)
    }

    fn is_complete(&self, stamp: Stamp) -> bool {
        self.books().clocks.is_complete(stamp)
    }

    fn refresh(&self, stream: StreamKey) -> Result<()> {
        let Some(id) = self.id(stream) else { return Ok(()) };
        let progress = self.driver.progress(id)?;
        self.books().clocks.complete(Stamp { stream, number: progress.completed.0 });
        Ok(())
    }

    fn wait_on(&self, stream: StreamKey, stamp: Stamp) -> Result<()> {
        let (Some(before), Some(after)) = (self.id(stamp.stream), self.id(stream)) else { return Ok(()) };
        if self.is_ordered(stream, stamp) {
            return Ok(());
        }
        let event = self.take_event()?;
        let edge = self.submit_edge(before, event, after);
        // The wait holds on to the signal it saw, so the event can be signalled again.
        self.keep_event(event);
        let (Submission(signalled), Submission(waited)) = edge?;
        let signal = Stamp { stream: stamp.stream, number: signalled };
        self.note(signal);
        self.books().clocks.order(stream, signal);
        self.note(Stamp { stream, number: waited });
        Ok(())
    }

    fn wait(&self, stamp: Stamp, timeout: Timeout) -> Result<Waited> {
        let Some(id) = self.id(stamp.stream) else { return Ok(Waited::Done) };
        let latest = self.latest(stamp.stream);
        let waited = self.driver.wait(WaitTarget::Stream(id), timeout)?;
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
