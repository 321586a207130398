//! Memory files that other processes can map.
//!
//! Pages that can be exported live in a sealed memory file: other processes map the same bytes, and the seals keep every process from
//! making the file shorter under a mapping. A header in front tells such a file from any other descriptor. Only Linux has sealed files.

use std::io;

use kiln_driver::SharedBytes;
use kiln_driver::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::memory::host_mmap::Mapping;
use crate::memory::page_file_error::RejectedPages;

/// Room for the header; a multiple of every page size, so that the contents can be mapped from here.
const HEADER_BYTES: u64 = 64 << 10;
const MAGIC: [u8; 16] = *b"kiln-sim pages 1";
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A memory file that other processes can map.
#[derive(Debug)]
pub(crate) struct PageFile {
    descriptor: OwnedFd,
    bytes: u64,
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

    /// How much memory an exported descriptor has.
    pub(crate) fn size(descriptor: BorrowedFd<'_>) -> Result<u64, RejectedPages> {
        let seals = rustix::fs::fcntl_get_seals(descriptor).map_err(|_| RejectedPages::NotPages)?;
        let mut header = [0; MAGIC.len() + 8];
        let read = rustix::io::pread(descriptor, &mut header, 0).map_err(|_| RejectedPages::NotPages)?;
        let (magic, size) = header.split_at(MAGIC.len());
        let size = u64::from_le_bytes(size.try_into().map_err(|_| RejectedPages::NotPages)?);
        let file_bytes = rustix::fs::fstat(descriptor).map_err(|_| RejectedPages::NotPages)?.st_size as u64;
        let whole = size.checked_add(HEADER_BYTES);
        if !seals.contains(SEALS) || read < header.len() || magic != MAGIC || whole != Some(file_bytes) {
            return Err(RejectedPages::NotPages);
        }
        Ok(size)
    }

    /// Takes an exported descriptor, under a new name.
    pub(crate) fn import(descriptor: BorrowedFd<'_>, bytes: u64) -> Result<Self, RejectedPages> {
        let size = Self::size(descriptor)?;
        if size != bytes {
            return Err(RejectedPages::Size(size));
        }
        let descriptor = descriptor.try_clone_to_owned().map_err(RejectedPages::System)?;
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
