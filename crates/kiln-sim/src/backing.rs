//! The host memory behind simulated memory: the only file of this crate with unsafe code.
//!
//! Large blocks are mapped without being touched, so a device of 16 GiB costs what is used of it. Pages that can be
//! exported live in a sealed memory file: other processes map the same bytes, and the seals keep every process from
//! making the file shorter under a mapping. A header in front tells such a file from any other descriptor.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use kiln_driver::SharedBytes;
use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Smaller blocks come from the heap.
const MAPPED_FROM_BYTES: u64 = 64 << 10;
/// Room for the header; a multiple of every page size, so that the contents can be mapped from here.
const HEADER_BYTES: u64 = 64 << 10;
const MAGIC: [u8; 16] = *b"kiln-sim pages 1";
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Memory that reads as zero and costs nothing until it is written.
pub(crate) fn zeroed(bytes: u64) -> io::Result<SharedBytes> {
    let len = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    if bytes < MAPPED_FROM_BYTES {
        return Ok(SharedBytes::zeroed(len));
    }
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a new mapping at an address the kernel picks aliases nothing.
    let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
    Mapping::new(start, len)
}

/// A memory file that other processes can map.
#[derive(Debug)]
pub(crate) struct PageFile {
    descriptor: OwnedFd,
    bytes: u64,
}

/// Why a descriptor was not taken.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// It is not a memory file made by [`PageFile::create`].
    NotPages,
    /// It is one, of another size.
    Size(u64),
    /// The system said no.
    System(io::Error),
}

impl PageFile {
    pub(crate) fn create(bytes: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create("kiln-sim-pages", flags)?;
        // The system makes it readable by all, though it has no name to open.
        rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR)?;
        let whole = bytes.checked_add(HEADER_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        rustix::fs::ftruncate(&descriptor, whole)?;
        rustix::fs::fcntl_add_seals(&descriptor, SEALS)?;
        rustix::io::pwrite(&descriptor, &MAGIC, 0)?;
        rustix::io::pwrite(&descriptor, &bytes.to_le_bytes(), MAGIC.len() as u64)?;
        Ok(Self { descriptor, bytes })
    }

    /// Takes an exported descriptor, under a new name.
    pub(crate) fn import(descriptor: BorrowedFd<'_>, bytes: u64) -> Result<Self, Rejected> {
        let seals = rustix::fs::fcntl_get_seals(descriptor).map_err(|_| Rejected::NotPages)?;
        let mut header = [0; MAGIC.len() + 8];
        let read = rustix::io::pread(descriptor, &mut header, 0).map_err(|_| Rejected::NotPages)?;
        let (magic, size) = header.split_at(MAGIC.len());
        let size = u64::from_le_bytes(size.try_into().map_err(|_| Rejected::NotPages)?);
        let file_bytes = rustix::fs::fstat(descriptor).map_err(|_| Rejected::NotPages)?.st_size as u64;
        let whole = size.checked_add(HEADER_BYTES);
        if !seals.contains(SEALS) || read < header.len() || magic != MAGIC || whole != Some(file_bytes) {
            return Err(Rejected::NotPages);
        }
        if size != bytes {
            return Err(Rejected::Size(size));
        }
        let descriptor = descriptor.try_clone_to_owned().map_err(Rejected::System)?;
        Ok(Self { descriptor, bytes })
    }

    /// The contents, shared with every process that maps them.
    pub(crate) fn map(&self) -> io::Result<SharedBytes> {
        let len = usize::try_from(self.bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address the kernel picks aliases nothing. The file is at least this long and the
        // seals that `create` set and `import` checked keep it so.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                access,
                MapFlags::SHARED,
                &self.descriptor,
                HEADER_BYTES,
            )
        }?;
        Mapping::new(start, len)
    }

    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        self.descriptor.try_clone()
    }

    /// The same for every descriptor of one file.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(self.descriptor.as_fd())?;
        Ok((stat.st_dev, stat.st_ino))
    }
}

/// A mapping that ends when this is dropped.
struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: a mapping is an address range of the process; unmapping it may happen on any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives no access to anything.
unsafe impl Sync for Mapping {}

impl Mapping {
    #[allow(clippy::new_ret_no_self)]
    fn new(start: *mut c_void, len: usize) -> io::Result<SharedBytes> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { start, len };
        // SAFETY: both callers just mapped `len` readable and writable bytes at `start`; they stay mapped until the
        // mapping is dropped, which the bytes own, and no other code has the address.
        Ok(unsafe { SharedBytes::from_raw(start.cast(), len, Box::new(mapping)) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, is unmapped only here, and `SharedBytes`, the only one who reads or
        // writes it, is going away.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}
