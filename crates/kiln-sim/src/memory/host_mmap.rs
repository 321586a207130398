//! Mapped memory of the host.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

use kiln_driver::SharedBytes;

/// A mapping that ends when this is dropped.
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: a mapping is an address range of the process; unmapping it may happen on any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives no access to anything.
unsafe impl Sync for Mapping {}

impl Mapping {
    #[allow(clippy::new_ret_no_self)]
    pub(crate) fn new(start: *mut c_void, len: usize) -> io::Result<SharedBytes> {
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
