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

/// Memory that reads as zero.
#[cfg(not(unix))]
pub(crate) fn zeroed(bytes: u64) -> io::Result<SharedBytes> {
    let len = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok(SharedBytes::zeroed(len))
}
