//! Convenience methods for callers of a driver.

use crate::clock::{Timeout, Waited};
use crate::command::{Command, DevicePlace, Pattern, Place, Submission};
use crate::driver::Driver;
use crate::error::Result;
use crate::handle::{EventId, StreamId};
use crate::host_memory::HostBlock;
use crate::stream::WaitTarget;

/// Calls every driver has for free.
pub trait DriverExt: Driver {
    /// Waits, for as long as it takes, until everything submitted to a stream is done.
    ///
    /// # Errors
    /// As for [`Driver::wait`].
    fn synchronize(&self, stream: StreamId) -> Result<()> {
        self.wait(WaitTarget::Stream(stream), Timeout::Never).map(|_| ())
    }

    /// Whether an event is done.
    ///
    /// # Errors
    /// As for [`Driver::wait`].
    fn is_done(&self, event: EventId) -> Result<bool> {
        self.wait(WaitTarget::Event(event), Timeout::Poll).map(Waited::is_done)
    }

    /// Queues a copy from the start of a host block.
    ///
    /// # Errors
    /// As for [`Driver::submit`].
    fn upload(&self, stream: StreamId, from: &HostBlock, to: DevicePlace, bytes: u64) -> Result<Submission> {
        let from = Place::Host { block: from.id(), offset: 0 };
        self.submit(stream, &Command::Copy { from, to: Place::Device(to), bytes })
    }

    /// Queues a copy to the start of a host block.
    ///
    /// # Errors
    /// As for [`Driver::submit`].
    fn download(
        &self,
        stream: StreamId,
        from: DevicePlace,
        to: &HostBlock,
        bytes: u64,
    ) -> Result<Submission> {
        let to = Place::Host { block: to.id(), offset: 0 };
        self.submit(stream, &Command::Copy { from: Place::Device(from), to, bytes })
    }

    /// Queues a fill with one byte.
    ///
    /// # Errors
    /// As for [`Driver::submit`].
    fn fill(&self, stream: StreamId, to: DevicePlace, byte: u8, count: u64) -> Result<Submission> {
        self.submit(stream, &Command::Fill { to, pattern: Pattern::U8(byte), count })
    }

    /// Makes what follows on one stream wait for what was submitted to another, through an event.
    ///
    /// # Errors
    /// As for [`Driver::submit`].
    fn order(&self, before: StreamId, event: EventId, after: StreamId) -> Result<()> {
        self.submit(before, &Command::Signal(event))?;
        self.submit(after, &Command::Wait(event)).map(|_| ())
    }
}

impl<D: Driver + ?Sized> DriverExt for D {}
