//! The host memory behind simulated memory.
//!
//! On Unix large blocks are mapped without being touched, so a device of 16 GiB costs what is used of it. Elsewhere they come from the heap.

use std::io;

use kiln_driver::SharedBytes;
#[cfg(unix)]
use rustix::mm::{MapFlags, ProtFlags};

#[cfg(unix)]
use crate::memory::host_mmap::Mapping;

/// Smaller blocks come from the heap.
#[cfg(unix)]
const MAPPED_FROM_BYTES: u64 = 64 << 10;

/// Memory that reads as zero and costs nothing until it is written.
#[cfg(unix)]
pub(crate) fn zeroed(bytes: u64) -> io::Result<SharedBytes> {
    let len = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    if bytes < MAPPED_FROM_BYTES {
        return Ok(SharedBytes::zeroed(len));
    }
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    #[cfg(target_os = "linux")]
    let flags = flags | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address the kernel picks aliases nothing.
    let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
    Mapping::new(start, len)
}

/// Whether every page below the bytes is mapped. Pages that no access may reach count as mapped.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn is_mapped(bytes: &SharedBytes) -> bool {
    use rustix::io::Errno;
    use rustix::mm::MsyncFlags;

    let start = bytes.as_ptr().addr();
    let first = start - start % rustix::param::page_size();
    let len = start - first + bytes.len();
    // SAFETY: on Linux `MS_ASYNC` writes nothing back and changes no page; it only looks at whether each is mapped.
    let answer =
        unsafe { rustix::mm::msync(std::ptr::without_provenance_mut(first), len, MsyncFlags::ASYNC) };
    answer != Err(Errno::NOMEM)
}

/// Not known here.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn is_mapped(_bytes: &SharedBytes) -> bool {
    true
}

/// Memory that reads as zero.
#[cfg(not(unix))]
pub(crate) fn zeroed(bytes: u64) -> io::Result<SharedBytes> {
    let len = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok(SharedBytes::zeroed(len))
}
