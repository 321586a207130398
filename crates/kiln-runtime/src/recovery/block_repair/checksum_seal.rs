//! A checksum of a block that is only read from here on, so that a wild write is found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{Access, Driver};
use kiln_isolate::{Checksum, ChecksumRequest};
use kiln_order::{Stamp, Stamps, StreamClock};

use crate::buffer::{Element, GpuRef, PinnedBuffer};
use crate::error::Result;
use crate::recovery::worker_replacement::WorkerRecovery;
use crate::runtime::{Block, DeviceRuntime, Ticket};

/// The sums of a block as it was after certain writes.
pub(crate) struct Seal {
    /// The last writes the sums speak of. A later write breaks the seal by itself.
    writes: Stamps,
    /// Where the sums arrive.
    sums: PinnedBuffer<u64>,
    /// They are there when this is done.
    made: Stamp,
}

impl Seal {
    /// The sums the block must have, if it was not written since and they are known to have arrived.
    pub(crate) fn sums(&self, block: &Block, known: &StreamClock) -> Option<Vec<u64>> {
        if !known.covers(self.made) || block.history().lock().writes() != self.writes {
            return None;
        }
        self.sums.as_it_is()
    }
}

/// What sealing takes: the kernel that sums, loaded when the first block is sealed by checksum.
#[derive(Default)]
pub(crate) struct Sealer {
    kernel: Mutex<Option<Checksum>>,
    /// Held while a block is being mapped another way, so that what is noted of it is how it is mapped.
    turn: Mutex<()>,
}

impl Sealer {
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kernel(&self, driver: &dyn Driver) -> kiln_driver::Result<Checksum> {
        let mut kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        match *kernel {
            Some(known) => Ok(known),
            None => Ok(*kernel.insert(Checksum::load(driver)?)),
        }
    }

    /// Gives the kernel back; for the end of a runtime.
    pub(crate) fn end(&self, driver: &dyn Driver) {
        if let Some(kernel) = self.kernel.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A lost device has released it.
            let _ = kernel.unload(driver);
        }
    }
}

impl<T: Element> GpuRef<T> {
    /// Seals the buffer: computes a checksum of its bytes on the device, after all submitted work that writes them. After the worker is
    /// replaced, the checksum is computed again. If it differs, the buffer is lost, or [filled again](Self::heal_with). This detects
    /// writes that no launch declared: a kernel may have written anywhere before it faulted.
    ///
    /// The next declared write removes the seal; call `seal` again after it. [`seal_read_only`](Self::seal_read_only) also prevents undeclared
    /// writes, if the block owns its pages. A device in this process is never replaced, so there `seal` does nothing.
    ///
    /// # Errors
    /// A part of a block, since blocks are lost whole; what the device says.
    pub fn seal(&self) -> Result<Ticket> {
        let runtime = DeviceRuntime::from_inner(self.whole_block()?);
        let (inner, lane) = (runtime.inner(), self.block().home(runtime.inner()));
        let Some(recovery) = WorkerRecovery::of(inner) else {
            return inner.submit_command(lane, &mut [self.used(Access::Read, 0)], None);
        };
        let writes = self.block().history().lock().writes();
        let kernel = recovery.sealer().kernel(&**inner.driver())?;
        let sums = runtime.allocate::<u64>(Checksum::chunks(self.bytes()) as usize)?;
        if let Some(place) = sums.place() {
            let (address, sums_address) = (self.address(), sums.address());
            let summed = ChecksumRequest { address, bytes: self.bytes(), sums: place, sums_address };
            let uses = &mut [self.used(Access::Read, 0), sums.used(Access::Write, 1)];
            inner.submit(lane, uses, |driver, stream| {
                // SAFETY: both blocks are held here and, once dropped, freed only after this use; both are stamped, so that what writes to
                // them comes before or after; there are as many sums as chunks.
                unsafe { kernel.submit(driver, stream, &summed) }.map(|_| ())
            })?;
        }
        let mut arrived = runtime.pinned_uninit(sums.len())?;
        let ticket = arrived.copy_from(&sums)?;
        recovery.registry().set_seal(self.block_id(), Seal { writes, sums: arrived, made: ticket.stamp() });
        Ok(ticket)
    }
}
