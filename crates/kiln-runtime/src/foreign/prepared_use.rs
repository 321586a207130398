//! A use of buffers by another library: the wait before it and the stamp after it, in one value.

use kiln_driver::{Access, DeviceAddress, StreamId};
use kiln_order::{Hold, PendingSubmission, Uses};

use super::block_use::BlockUse;
use crate::buffer::{Element, GpuRef};
use crate::error::{Misuse, Result};
use crate::runtime::{DeviceRuntime, Stream, Ticket};

/// Blocks that are ready to be used by work the caller queues on a stream.
///
/// The waits are queued and the blocks stamped already: the next use of one of them comes after. Other submissions to the stream
/// wait until this is finished, so queue the work and finish at once. Dropping it instead of finishing is reported by the runtime,
/// and the stamps stay, so that no order is lost.
///
/// It stays with its thread. What the same thread asks for meanwhile and would have to wait for this is refused with
/// [`Misuse::Prepared`], before anything is queued or stamped: a submission to the stream, work of another stream that uses one of the
/// blocks, the end of the device. Memory whose last handle is dropped meanwhile is given back after this.
///
/// ```compile_fail,E0277
/// fn leaves_its_thread<T: Send>() {}
/// leaves_its_thread::<kiln::foreign::PreparedUse<'static>>();
/// ```
#[must_use = "queue the work, then finish"]
pub struct PreparedUse<'a> {
    runtime: &'a DeviceRuntime,
    stream: &'a Stream,
    begun: PendingSubmission<'a>,
    finished: bool,
    /// Behind `begun`, which leaves the stream when it is dropped.
    _hold: Hold,
}

impl DeviceRuntime {
    /// Whether uses of blocks by foreign work can be tracked. They can.
    pub fn supports_block_use_tracking(&self) -> bool {
        true
    }

    /// Makes blocks ready for work the caller is about to queue on a stream: waits for what it has to come after, and stamps them.
    ///
    /// # Errors
    /// Foreign or stale buffers, a foreign stream, two overlapping writes, another prepared use that this thread holds and that this
    /// one would wait for; nothing is queued or stamped then.
    pub fn prepare_block_use<'a>(
        &'a self,
        stream: &'a Stream,
        uses: &[BlockUse<'_>],
    ) -> Result<PreparedUse<'a>> {
        self.inner().check_ready()?;
        let mut checked = Uses::new();
        self.check_uses(stream, uses, &mut checked)?;
        let begun = self.inner().tracker().begin(stream.lane(), &mut checked)?;
        self.inner().note_foreign(stream.lane(), &checked);
        let hold = Hold::new(self.inner().tracker_handle(), stream.id(), begun.stamp());
        Ok(PreparedUse { runtime: self, stream, begun, finished: false, _hold: hold })
    }

    /// As [`prepare_block_use`](Self::prepare_block_use) for the first use of one block that was just allocated. What the block holds is not
    /// known then, so the first use mostly writes it; a library that reads and writes it in one call says so.
    ///
    /// # Errors
    /// As for [`prepare_block_use`](Self::prepare_block_use).
    pub fn prepare_first_use<'a, T: Element>(
        &'a self,
        stream: &'a Stream,
        block: &GpuRef<T>,
        access: Access,
    ) -> Result<PreparedUse<'a>> {
        self.prepare_block_use(stream, &[block.used_as(access)])
    }

    /// The work is queued; the same as [`PreparedUse::finish`], for callers that pair the two by name.
    ///
    /// # Errors
    /// What the driver says.
    pub fn finish_block_use(&self, prepared: PreparedUse<'_>) -> Result<Ticket> {
        prepared.finish()
    }

    /// The first use is queued; the same as [`PreparedUse::finish`], for callers that pair the two by name.
    ///
    /// # Errors
    /// What the driver says.
    pub fn finish_first_use(&self, prepared: PreparedUse<'_>) -> Result<Ticket> {
        prepared.finish()
    }

    /// Stamps blocks that work the caller queued already uses. Nothing waits any more, so that work must have been ordered by the
    /// caller.
    ///
    /// # Errors
    /// As for [`prepare_block_use`](Self::prepare_block_use).
    pub fn record_block_use(&self, stream: &Stream, uses: &[BlockUse<'_>]) -> Result<Ticket> {
        let mut checked = Uses::new();
        self.check_uses(stream, uses, &mut checked)?;
        let stamp = self.inner().stamp(stream.lane(), &mut checked)?;
        Ok(Ticket::new(self.inner(), stamp))
    }

    /// Checks uses and fills them in where the caller wants them: they are too large to be handed back.
    pub(super) fn check_uses<'u>(
        &self,
        stream: &Stream,
        uses: &[BlockUse<'u>],
        checked: &mut Uses<'u>,
    ) -> Result<()> {
        if !stream.belongs_to(self.inner()) {
            return Err(Misuse::ForeignStream { stream: stream.id().to_string() }.into());
        }
        for (at, each) in uses.iter().enumerate() {
            each.block.check_runtime(self.inner())?;
            if !each.range.is_empty() {
                checked.push(each.used(at as u16));
            }
        }
        Ok(())
    }
}

impl PreparedUse<'_> {
    /// The stream to queue on.
    pub fn stream(&self) -> StreamId {
        self.stream.id()
    }

    /// The native handle of the stream.
    ///
    /// # Errors
    /// Unsupported on a device without native handles.
    pub fn native_stream(&self) -> Result<u64> {
        Ok(self.runtime.driver().native(self.stream.id().into())?)
    }

    /// The work is queued.
    ///
    /// # Errors
    /// What the driver says.
    pub fn finish(mut self) -> Result<Ticket> {
        self.finished = true;
        self.begun.record()?;
        Ok(Ticket::new(self.runtime.inner(), self.begun.stamp()))
    }
}

impl Drop for PreparedUse<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.runtime.inner().note_unfinished_use();
            tracing::error!(stamp = %self.begun.stamp(), "a prepared use of blocks was dropped without being finished");
        }
    }
}

/// The address of a buffer, for calls into other libraries. The buffer is stamped for the access; the guard ends the use when it is
/// dropped, after the caller queued what uses the address.
#[must_use = "queue what uses the address before this is dropped"]
pub struct RawPointer<'a> {
    prepared: PreparedUse<'a>,
    address: DeviceAddress,
}

impl DeviceRuntime {
    /// The checked address of a buffer, ready to be used on a stream.
    ///
    /// # Errors
    /// As for [`prepare_block_use`](Self::prepare_block_use).
    pub fn raw_device_ptr<'a, T: Element>(
        &'a self,
        stream: &'a Stream,
        buffer: &GpuRef<T>,
        access: Access,
    ) -> Result<RawPointer<'a>> {
        let prepared = self.prepare_block_use(stream, &[buffer.used_as(access)])?;
        Ok(RawPointer { prepared, address: buffer.address() })
    }
}

impl RawPointer<'_> {
    /// The address; 0 for a buffer of no elements.
    pub fn address(&self) -> DeviceAddress {
        self.address
    }

    /// The stream to queue on.
    pub fn stream(&self) -> StreamId {
        self.prepared.stream()
    }
}

impl Drop for RawPointer<'_> {
    fn drop(&mut self) {
        self.prepared.finished = true;
        // An event that could not be recorded now is recorded when it is needed.
        let _ = self.prepared.begun.record();
    }
}
