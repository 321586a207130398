//! Memory that two processes map (`memfd`). No other file of this crate maps memory.
//!
//! A memory file has no name in a file system, so no other process can open it. It is sealed before it is sent: if the peer could shorten
//! it, the next access would raise SIGBUS. The receiver checks size and seals before it maps the file.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use kiln_driver::SharedBytes;
use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A sealed memory file.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    descriptor: OwnedFd,
    bytes: u64,
}

impl MemoryFile {
    /// A new file of zeros. Pages that are never touched use no memory.
    pub(crate) fn create(bytes: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create("kiln-isolate", flags)?;
        rustix::fs::fchmod(&descriptor, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::ftruncate(&descriptor, bytes)?;
        rustix::fs::fcntl_add_seals(&descriptor, SEALS)?;
        Ok(Self { descriptor, bytes })
    }

    /// A file that holds these bytes.
    pub(crate) fn holding(contents: &[u8]) -> io::Result<Self> {
        let file = Self::create(contents.len() as u64)?;
        let mut at = 0;
        while let Some(rest) = contents.get(at..).filter(|rest| !rest.is_empty()) {
            at += rustix::io::pwrite(&file.descriptor, rest, at as u64)?;
        }
        Ok(file)
    }

    /// A file that another process sent, if it is a sealed memory file of that size.
    pub(crate) fn adopt(descriptor: OwnedFd, bytes: u64) -> io::Result<Self> {
        let seals = rustix::fs::fcntl_get_seals(&descriptor)?;
        let size = rustix::fs::fstat(&descriptor)?.st_size;
        if !seals.contains(SEALS) || u64::try_from(size) != Ok(bytes) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a sealed memory file of that size"));
        }
        Ok(Self { descriptor, bytes })
    }

    /// Maps its contents, shared with every process that maps them.
    pub(crate) fn map(&self) -> io::Result<SharedBytes> {
        let len = usize::try_from(self.bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        if len == 0 {
            return Ok(SharedBytes::zeroed(0));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping at an address the kernel picks aliases nothing. The file is this long and the seals that
        // `create` set and `adopt` checked keep it so.
        let start =
            unsafe { rustix::mm::mmap(anywhere, len, access, MapFlags::SHARED, &self.descriptor, 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping { start, len };
        // SAFETY: the bytes were just mapped readable and writable. They stay so until the mapping is dropped, which the bytes own, and
        // no other code in this process has the address.
        Ok(unsafe { SharedBytes::from_raw(start.cast(), len, Box::new(mapping)) })
    }

    /// A copy of its contents.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let len = usize::try_from(self.bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut contents = Vec::new();
        contents.try_reserve_exact(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        contents.resize(len, 0);
        let mut at = 0;
        while let Some(rest) = contents.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&self.descriptor, rest, at as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => at += read,
            }
        }
        Ok(contents)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.descriptor
    }
}

/// A mapping, unmapped on drop.
struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: a mapping is an address range of the process; unmapping it may happen on any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives no access to anything.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` and is unmapped only here. `SharedBytes`, which alone reads and writes it, is being
        // dropped.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_are_one_memory_and_the_file_keeps_its_size() {
        let file = MemoryFile::create(8192).unwrap();
        let (here, there) = (file.map().unwrap(), file.map().unwrap());
        assert!(here.write(5000, b"kiln"));
        let mut back = [0; 4];
        assert!(there.read(5000, &mut back));
        assert_eq!(&back, b"kiln");
        assert!(rustix::fs::ftruncate(file.descriptor(), 0).is_err());
        let stat = rustix::fs::fstat(file.descriptor()).unwrap();
        assert_eq!(stat.st_mode & 0o777, 0o600);
    }

    #[test]
    fn a_received_file_is_checked() {
        let copy = |file: &MemoryFile| file.descriptor().try_clone_to_owned().unwrap();
        let file = MemoryFile::holding(&[7; 100]).unwrap();
        assert_eq!(MemoryFile::adopt(copy(&file), 100).unwrap().read().unwrap(), [7; 100]);
        assert!(MemoryFile::adopt(copy(&file), 101).is_err());
        let unsealed = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        assert!(MemoryFile::adopt(unsealed, 0).is_err());
        let (reader, _writer) = io::pipe().unwrap();
        assert!(MemoryFile::adopt(reader.into(), 0).is_err());
    }
}
