//! Which physical memory a block lies in, for handing it to another process.

use kiln_driver::PagesId;

/// A part of a block that lies in one physical allocation.
///
/// The parts of a block come in order. All but the first begin at the start of their allocation and all but the last end at
/// its end, so a process that imports the allocations and maps them one after the other has the block at the
/// [`offset`](Self::offset) of its first part.
///
/// ```
/// use std::os::fd::AsFd;
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, Protection, ReserveRequest, StreamRequest};
/// use kiln_mem::{DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, AllocationRequest};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?)?;
/// let config = HeapConfig { exportable: true, ..HeapConfig::default() };
/// let heap = Heap::over_pages(driver.clone(), order, config)?;
/// let block = heap.allocate(&AllocationRequest::new(3 << 20, stream))?;
///
/// // Here: a descriptor for each part. There: the same memory, under other addresses.
/// let parts = heap.page_parts(&block)?;
/// let window = driver.reserve(ReserveRequest { bytes: parts.iter().map(|part| part.pages_bytes).sum(), at: None })?;
/// let mut imported = Vec::new();
/// for part in &parts {
///     imported.push(driver.import_pages(heap.export_pages(part)?.as_fd(), part.pages_bytes)?);
/// }
/// driver.map(window.id, 0, &imported, Protection::ReadWrite)?;
/// let at = window.address.0 + parts[0].offset;
/// # assert!(at + block.bytes() <= window.address.0 + window.bytes);
/// # heap.free(block)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PagePart {
    /// The allocation. It stays for as long as the block is live.
    pub pages: PagesId,
    /// How large it is, which the importing process has to know.
    pub pages_bytes: u64,
    /// Where in it the part begins.
    pub offset: u64,
    /// How long the part is.
    pub bytes: u64,
}

/// An allocation in a window of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Located {
    pub(crate) pages: PagesId,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// The parts of a stretch of a window, from the allocations in it in order; none if they do not cover it.
pub(crate) fn parts_of(
    start: u64,
    bytes: u64,
    frames: impl IntoIterator<Item = Located>,
) -> Option<Vec<PagePart>> {
    let end = start.checked_add(bytes)?;
    let (mut at, mut parts) = (start, Vec::new());
    for frame in frames {
        let frame_end = frame.start + frame.bytes;
        if at >= end || frame.start > at || frame_end <= at {
            break;
        }
        let to = frame_end.min(end);
        parts.push(PagePart {
            pages: frame.pages,
            pages_bytes: frame.bytes,
            offset: at - frame.start,
            bytes: to - at,
        });
        at = to;
    }
    (at == end).then_some(parts)
}
