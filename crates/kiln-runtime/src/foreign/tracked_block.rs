//! Blocks that the caller took from the memory stack, as buffers.

use std::fmt;

use kiln_mem::DeviceBlock;

use crate::buffer::{Element, GpuRef};
use crate::error::{Error, Misuse, Result};
use crate::runtime::{Block, DeviceRuntime};

/// A block that could not be tracked; it comes back, with nothing changed.
#[derive(Debug)]
pub struct TrackError {
    /// The block. Dropping it leaks its memory; give it back to its resource.
    pub block: DeviceBlock,
    /// Why.
    pub error: Error,
}

impl fmt::Display for TrackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be tracked: {}", self.block, self.error)
    }
}

impl std::error::Error for TrackError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl DeviceRuntime {
    /// Makes a buffer of a block that [`memory`](Self::memory) gave out, tracked like any other: its home is the stream it was allocated for, and
    /// when the last handle is dropped it goes back to the memory stack after its last use.
    ///
    /// What was queued on that stream so far comes before every use. What was queued on other streams is not known, so the caller has to order
    /// that.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln::memory::{AllocationRequest, MemoryResource};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let block = gpu.memory().allocate(&AllocationRequest::new(16, gpu.main_stream().memory_ref())).unwrap();
    /// let buffer = gpu.track_block::<u32>(block).unwrap();
    /// buffer.fill(7)?;
    /// assert_eq!(buffer.download()?, [7; 4]);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// A block of another memory stack; bytes that are no whole number of elements or not aligned for them; a device that takes no work. The block
    /// comes back.
    pub fn track_block<T: Element>(&self, block: DeviceBlock) -> std::result::Result<GpuRef<T>, TrackError> {
        if let Err(error) = self.check_block::<T>(&block) {
            return Err(TrackError { block, error });
        }
        let len = block.bytes().checked_div(size_of::<T>() as u64).unwrap_or(0) as usize;
        match Block::take_over(self.inner(), block) {
            Ok(block) => Ok(GpuRef::over(block, len)),
            Err((error, block)) => Err(TrackError { block, error }),
        }
    }

    fn check_block<T: Element>(&self, block: &DeviceBlock) -> Result<()> {
        self.inner().check_ready()?;
        if block.owner() != self.memory().key() {
            return Err(Misuse::ForeignMemory.into());
        }
        let (bytes, element_bytes, address) = (block.bytes(), size_of::<T>() as u64, block.address().0);
        let fits = if element_bytes == 0 { bytes == 0 } else { bytes.is_multiple_of(element_bytes) };
        if fits && address.is_multiple_of(align_of::<T>() as u64) {
            return Ok(());
        }
        Err(Misuse::Cast { bytes, offset: address, element_bytes }.into())
    }
}
