//! Events between kiln and other libraries.
//!
//! Work that another library queued on its stream is known to kiln by an event: [`ForeignEvent`] takes one in, and streams or
//! uses of blocks can be ordered after it. The other way round, [`HandedEvent`] hands an event on that is done when a submission is,
//! for a library that waits itself.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use kiln_driver::{Command, EventId, EventRequest, ForeignHandle, Timeout, WaitTarget};
use kiln_order::{EventLease, Uses};

use super::block_use::BlockUse;
use crate::error::{Error, Misuse, Result};
use crate::runtime::{DeviceRuntime, Inner, Keep, RuntimeLookup, Stream, Ticket};

/// An event that another library made and signals. It is left alone when this is dropped.
///
/// A wait means the last signal before the wait was queued, as for any event: let the other library record it first.
pub struct ForeignEvent {
    runtime: Weak<Inner>,
    id: EventId,
    /// What keeps the event alive; let go after its name is given back.
    _keep: Option<Keep>,
}

impl DeviceRuntime {
    /// Takes an event of another library in.
    ///
    /// # Errors
    /// Unsupported on a device without native handles; what the driver says.
    pub fn import_event(&self, event: ForeignHandle) -> Result<ForeignEvent> {
        self.take_event_in(event, None)
    }

    /// As [`import_event`](Self::import_event), and keeps something alive as long as the event is used: what owns it.
    ///
    /// # Errors
    /// As for [`import_event`](Self::import_event).
    pub fn import_event_kept(
        &self,
        event: ForeignHandle,
        owner: impl Send + Sync + 'static,
    ) -> Result<ForeignEvent> {
        self.take_event_in(event, Some(Box::new(owner)))
    }

    fn take_event_in(&self, event: ForeignHandle, keep: Option<Keep>) -> Result<ForeignEvent> {
        self.inner().check_ready()?;
        let id = self.driver().create_event(EventRequest::Foreign(event))?;
        self.inner().lend(id);
        Ok(ForeignEvent { runtime: std::sync::Arc::downgrade(self.inner()), id, _keep: keep })
    }

    /// Stamps blocks that work of another library uses, which is done when its event is. The next use of one of the blocks comes
    /// after that work. The use takes its place in the order of a stream of this runtime, which waits for the event.
    ///
    /// The other library has ordered its work after earlier uses by itself, for one by an event of [`Ticket::handed_event`].
    ///
    /// # Errors
    /// As for [`prepare_block_use`](Self::prepare_block_use); an event of another runtime. Nothing is queued or stamped then.
    pub fn record_foreign_use(
        &self,
        stream: &Stream,
        uses: &[BlockUse<'_>],
        done: &ForeignEvent,
    ) -> Result<Ticket> {
        done.check_runtime(self.inner())?;
        let mut checked = Uses::new();
        self.check_uses(stream, uses, &mut checked)?;
        let wait = Command::Wait(done.id);
        let stamp = self
            .inner()
            .submit(stream.lane(), &mut checked, |driver, stream| driver.submit(stream, &wait).map(|_| ()))?;
        Ok(Ticket::new(self.inner(), stamp))
    }
}

impl ForeignEvent {
    /// Its name at the driver.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// Waits on the host for what signalled it last, no longer than this; false if time ran out.
    ///
    /// # Errors
    /// The fault, if the device is lost; a runtime that is gone.
    pub fn wait_within(&self, limit: Duration) -> Result<bool> {
        let runtime = self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))?;
        Ok(runtime.driver().wait(WaitTarget::Event(self.id), Timeout::After(limit))?.is_done())
    }

    fn check_runtime(&self, runtime: &Inner) -> Result<()> {
        if std::ptr::eq(self.runtime.as_ptr(), runtime) { Ok(()) } else { Err(Misuse::ForeignEvent.into()) }
    }
}

impl Drop for ForeignEvent {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.take_back(self.id);
            // Only the name is given back, and a lost device has no names.
            let _ = runtime.driver().destroy(self.id.into());
        }
    }
}

impl fmt::Debug for ForeignEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "foreign {}", self.id)
    }
}

impl Stream {
    /// Makes everything submitted to this stream from here on come after an event of another library, on the device.
    ///
    /// # Errors
    /// An event of another runtime; what the driver says.
    pub fn wait_event(&self, event: &ForeignEvent) -> Result<()> {
        self.queue_edge(event, Command::Wait(event.id))
    }

    /// Signals an event of another library once everything submitted to this stream so far is done.
    ///
    /// # Errors
    /// As for [`wait_event`](Self::wait_event).
    pub fn signal_event(&self, event: &ForeignEvent) -> Result<()> {
        self.queue_edge(event, Command::Signal(event.id))
    }

    fn queue_edge(&self, event: &ForeignEvent, edge: Command<'_>) -> Result<()> {
        let runtime = self.runtime()?;
        event.check_runtime(&runtime)?;
        // A submission of no blocks: what comes next on this stream, and what waits for that, comes after the edge.
        runtime.submit(self.lane(), &mut [], |driver, stream| driver.submit(stream, &edge).map(|_| ()))?;
        Ok(())
    }
}

/// An event of kiln's that is done when a submission is, lent to another library to wait for.
///
/// While this lives the event is not signalled again for something else. The other library waits for it and neither records nor
/// destroys it.
pub struct HandedEvent {
    runtime: Weak<Inner>,
    lease: EventLease,
}

impl Ticket {
    /// An event that is done when this submission is. It may also cover work submitted after it.
    ///
    /// # Errors
    /// What the driver says; a runtime that is gone.
    pub fn handed_event(&self) -> Result<HandedEvent> {
        let RuntimeLookup::Live(runtime) = self.lookup() else {
            return Err(Error::new(Misuse::RuntimeGone));
        };
        let lease = runtime.tracker().event_after(self.stamp())?.event.clone();
        Ok(HandedEvent { runtime: std::sync::Arc::downgrade(&runtime), lease })
    }
}

impl HandedEvent {
    /// Its name at the driver.
    pub fn id(&self) -> EventId {
        self.lease.event()
    }

    /// The native handle: a `CUevent` on CUDA.
    ///
    /// # Errors
    /// Unsupported on a device without native handles; a runtime that is gone.
    pub fn native(&self) -> Result<u64> {
        let runtime = self.runtime.upgrade().ok_or_else(|| Error::new(Misuse::RuntimeGone))?;
        Ok(runtime.driver().native(self.id().into())?)
    }
}

impl fmt::Debug for HandedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handed {}", self.id())
    }
}
