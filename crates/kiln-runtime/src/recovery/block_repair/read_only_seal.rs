//! Blocks that are mapped read-only, so that a wild write is a fault and changes nothing.
//!
//! Two things keep a sealed block from being written: its history refuses every step that would (so nothing is queued through this crate), and
//! its pages are mapped read-only (so a kernel that strays is stopped by the device). The first is set before the second and taken back after
//! it. The pages stay so in every later worker, because the isolated device keeps how each is mapped.

use kiln_driver::{Base, DevicePlace, Protection, ReservationId, Timeout};
use kiln_mem::resource_stack::StackBase as MemoryBase;
use kiln_mem::{DeviceBlock, PAGE_BYTES};

use crate::buffer::{Element, GpuRef};
use crate::error::{Result, SealError};
use crate::recovery::worker_replacement::WorkerRecovery;
use crate::runtime::Inner;

/// The pages of a block that no other block lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OwnPages {
    reservation: ReservationId,
    offset: u64,
    bytes: u64,
}

impl OwnPages {
    /// The pages a block would own. Whether they are whole mappings is the device's to say: physical memory that a part of belongs to
    /// others is none.
    pub(crate) fn of(runtime: &Inner, place: Option<DevicePlace>, bytes: u64) -> Option<Self> {
        let DevicePlace { base: Base::Reservation(reservation), offset } = place? else { return None };
        // A block of the base `pages` has its last page to itself; one of a heap shares it unless it ends with it.
        let bytes = match runtime.config().memory.stack.base() {
            MemoryBase::Pages => bytes.checked_next_multiple_of(PAGE_BYTES)?,
            _ => bytes,
        };
        let is_whole = offset.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES);
        is_whole.then_some(Self { reservation, offset, bytes })
    }

    /// Lets the memory of a sealed block that is given up be written by its next owner. On a lost device that holds from the next worker
    /// on. False if it cannot be.
    pub(crate) fn reopen(runtime: &Inner, recovery: &WorkerRecovery, memory: &DeviceBlock) -> bool {
        let own = Self::of(runtime, memory.device_place(), memory.bytes());
        let opened = own.map_or(Ok(()), |own| own.protect(recovery, Protection::ReadWrite));
        if let Err(error) = &opened {
            tracing::error!(%error, "the memory of a sealed block could not be opened and is not used again");
        }
        opened.is_ok()
    }

    fn protect(self, recovery: &WorkerRecovery, protection: Protection) -> kiln_driver::Result<()> {
        recovery.device().protect_pages(self.reservation, self.offset, self.bytes, protection)
    }
}

/// Mapping read-only.
impl<T: Element> GpuRef<T> {
    /// Seals the buffer read-only: from here on every write through this crate is refused
    /// ([`Misuse::Sealed`](crate::Misuse::Sealed)), and a kernel that strays into it faults without having changed it. After
    /// the takeover it is kept, and the report says [`Sealed`](crate::recovery::BlockOutcome::Sealed). That holds in every later worker, until
    /// [`unseal`](Self::unseal) or until the last handle is dropped.
    ///
    /// Waits for the work that uses the buffer. Physical memory is protected whole, so the block has to own its pages: one of a memory stack
    /// based on `pages`, or a block of a heap that happens to be of whole frames. Others can be sealed by checksum:
    ///
    /// ```
    /// # use kiln::{GpuRef, Result, error::ErrorKind};
    /// fn guard(weights: &GpuRef<f32>) -> Result<()> {
    ///     match weights.seal_read_only() {
    ///         Err(error) if matches!(error.kind(), ErrorKind::Seal(_)) => weights.seal().map(drop),
    ///         sealed => sealed,
    ///     }
    /// }
    /// # let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// # guard(&gpu.upload(&[1.0])?)?;
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SealError`], and nothing is changed: a block that shares its pages, a device that cannot protect them, a device in this
    /// process. A part of a block; what the device says.
    pub fn seal_read_only(&self) -> Result<()> {
        let runtime = self.whole_block()?;
        let recovery = WorkerRecovery::of(&runtime).ok_or(SealError::InProcess)?;
        if self.bytes() == 0 {
            return Ok(());
        }
        let shared = || SealError::SharedPages { block: self.block_id(), bytes: self.bytes() };
        let pages = OwnPages::of(&runtime, self.place(), self.bytes()).ok_or_else(shared)?;
        let _turn = recovery.sealer().turn();
        let used = {
            let mut history = self.block().history().lock();
            if history.is_sealed() {
                return Ok(());
            }
            // No write is queued from here on, and what was queued is stamped.
            history.seal();
            history.all()
        };
        let waited = used.iter().try_for_each(|stamp| {
            runtime.tracker().wait(stamp, Timeout::Never).map(drop).map_err(crate::Error::from)
        });
        // A takeover ends waits, too. On a device that is ready either there was none, or the block is known to be kept.
        let kept = waited.and_then(|()| runtime.check_ready()).and_then(|()| self.whole_block());
        let sealed = kept.and_then(|_| {
            pages.protect(recovery, Protection::Read).map_err(|error| match error {
                error if error.is_refused() => shared().into(),
                error if error.is_unsupported() => SealError::Unsupported { why: error.to_string() }.into(),
                error => error.into(),
            })
        });
        sealed.inspect_err(|_| self.block().history().lock().unseal())
    }

    /// Lets the buffer be written again, whichever way it was sealed. One that is not sealed stays as it is.
    ///
    /// # Errors
    /// A part of a block; a block that is lost; what the device says, and then it is sealed as before.
    pub fn unseal(&self) -> Result<()> {
        let runtime = self.whole_block()?;
        let Some(recovery) = WorkerRecovery::of(&runtime) else { return Ok(()) };
        let _turn = recovery.sealer().turn();
        if self.block().is_sealed() {
            if let Some(pages) = OwnPages::of(&runtime, self.place(), self.bytes()) {
                pages.protect(recovery, Protection::ReadWrite)?;
            }
            self.block().history().lock().unseal();
        }
        recovery.registry().break_seal(self.block_id());
        Ok(())
    }

    /// Whether it is sealed [read-only](Self::seal_read_only), and writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.block().is_sealed()
    }
}
