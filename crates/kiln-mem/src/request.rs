//! An allocation request.

use crate::last_use::StreamRef;
use crate::tag::AllocTag;

/// A request for memory.
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::{AllocTag, DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, AllocationRequest};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?)?;
/// let heap = Heap::over_pages(driver, order, HeapConfig::default())?;
///
/// let request = AllocationRequest::new(5000, stream).align(4096).tag(AllocTag::new("scratch")?);
/// let block = heap.allocate(&request)?;
/// assert!(block.bytes() == 5000 && block.address().0 % 4096 == 0);
/// assert_eq!(heap.counts(request.tag).live_bytes(), 5000);
/// heap.free(block)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocationRequest {
    /// How many bytes; zero is a valid block that takes no memory.
    pub bytes: u64,
    /// The first address is a multiple of this; a power of two.
    pub align: u64,
    /// The stream the memory is for: work submitted to it after the call may use the block.
    pub stream: StreamRef,
    /// What it is for.
    pub tag: AllocTag,
}

impl AllocationRequest {
    /// The alignment every block has without asking.
    pub const MIN_ALIGN: u64 = 256;
    /// More than this is refused: no device has memory to align to it.
    pub const MAX_ALIGN: u64 = 1 << 32;

    /// A request for bytes on a stream, with the usual alignment and no tag.
    pub fn new(bytes: u64, stream: StreamRef) -> Self {
        Self { bytes, align: Self::MIN_ALIGN, stream, tag: AllocTag::default() }
    }

    /// The same with another alignment.
    #[must_use]
    pub fn align(self, align: u64) -> Self {
        Self { align, ..self }
    }

    /// The same with a tag.
    #[must_use]
    pub fn tag(self, tag: AllocTag) -> Self {
        Self { tag, ..self }
    }

    /// The same for another number of bytes.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}
