//! Memory of other libraries as buffers.

use kiln_driver::ForeignMemory;

use crate::buffer::{Element, GpuRef};
use crate::error::{Misuse, Result};
use crate::runtime::{Block, DeviceRuntime, Stream};

impl DeviceRuntime {
    /// Memory that another library owns, as a buffer like any other.
    ///
    /// What the owner queued on `home` so far comes before every use. When the last handle is dropped, `home` is made to wait for all
    /// uses and `owner` is let go, so that the owner may free the memory in the order of that stream at once. Nothing blocks.
    ///
    /// # Errors
    /// Bytes that are no whole number of elements or not aligned for them; a stream of another runtime; what the driver says.
    pub fn adopt_memory<T: Element>(
        &self,
        home: &Stream,
        memory: ForeignMemory,
        owner: impl Send + Sync + 'static,
    ) -> Result<GpuRef<T>> {
        let (bytes, size, address) = (memory.bytes(), size_of::<T>() as u64, memory.address().0);
        if size == 0 || bytes == 0 {
            // Nothing of the owner's is used, so nothing is kept.
            return self.allocate_on(home, 0);
        }
        if !bytes.is_multiple_of(size) || !address.is_multiple_of(align_of::<T>() as u64) {
            return Err(Misuse::Cast { bytes, offset: address, element_bytes: size }.into());
        }
        let block = Block::adopt(self.inner(), home, memory, Box::new(owner))?;
        Ok(GpuRef::over(block, (bytes / size) as usize))
    }
}
