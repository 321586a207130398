//! Memory of the program that calls: results, structures, texts, and the bytes that copies move.
//!
//! The types here are what pointers of the C functions become. A null pointer is an error, and so is an address that no process has. Any other pointer is believed
//! where the API asks for a place for one value, as the driver believes it; bytes of unknown origin ([`fetch`], [`store`]) go through a call of the system
//! that answers an error for addresses without memory.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_driver::Code;

use crate::boundary::Answer;

/// Whether no process has memory at an address: the system keeps the first page free, and processors of today leave the highest byte out.
#[inline]
fn is_nowhere(address: usize) -> bool {
    const FIRST_PAGE_BYTES: usize = 4096;
    // Other processors let programs keep a mark in that byte.
    address < FIRST_PAGE_BYTES || (cfg!(target_arch = "x86_64") && address >> 56 != 0)
}

/// A place for a result.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    /// The place at an address.
    pub(crate) fn at(address: *mut c_void) -> Self {
        Self(address.cast())
    }

    /// An error if it is null, or no process has memory there.
    pub(crate) fn check(self) -> Answer<Self> {
        if is_nowhere(self.0.addr()) { Err(Code::INVALID_VALUE) } else { Ok(self) }
    }

    pub(crate) fn address(self) -> usize {
        self.0.addr()
    }

    /// Writes the result.
    pub(crate) fn set(self, value: T) -> Answer {
        self.check()?;
        // SAFETY: the API requires that a pointer for a result, if it is not null, points to a place for one value of this type.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result, if it is wanted.
    pub(crate) fn set_if_wanted(self, value: T) {
        // A null pointer says that it is not wanted.
        let _ = self.set(value);
    }

    /// Reads what is there.
    pub(crate) fn get(self) -> Answer<T> {
        In(self.0.cast_const()).get()
    }

    /// Writes the element at an index.
    pub(crate) fn set_at(self, index: usize, value: T) -> Answer {
        self.check()?;
        // SAFETY: the API requires that a pointer to an array points to as many elements as the call says; the index is below that count.
        unsafe { self.0.wrapping_add(index).write_unaligned(value) };
        Ok(())
    }
}

/// A value that the caller gives by a pointer.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    pub(crate) fn null() -> Self {
        Self(std::ptr::null())
    }

    /// The values at an address.
    pub(crate) fn at_address(address: usize) -> Self {
        Self(address as *const T)
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn address(self) -> usize {
        self.0.addr()
    }

    /// The value.
    pub(crate) fn get(self) -> Answer<T> {
        self.at(0)
    }

    /// The element at an index.
    pub(crate) fn at(self, index: usize) -> Answer<T> {
        if is_nowhere(self.0.addr()) {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the API requires that a pointer to a value or an array, if it is not null, points to as many elements as the call says; the
        // types used here are integers, addresses and structures of them, for which all bytes are valid.
        Ok(unsafe { self.0.wrapping_add(index).read_unaligned() })
    }
}

/// A text that ends with a zero byte.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text at an address.
    pub(crate) fn at(address: *const c_void) -> Self {
        Self(address.cast())
    }

    /// A copy of the text.
    pub(crate) fn get(self) -> Answer<String> {
        if is_nowhere(self.0.addr()) {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the API requires that a text that is not null ends with a zero byte.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// Writes a text with its zero byte into a place for so many bytes, cut if it is longer.
pub(crate) fn store_text(to: Out<c_char>, room: usize, text: &str) -> Answer {
    to.check()?;
    if room == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let bytes = text.as_bytes().iter().take(room - 1).copied().chain([0]);
    for (index, byte) in bytes.enumerate() {
        to.set_at(index, byte as c_char)?;
    }
    Ok(())
}

/// Whether the system lets a process read its memory by a call; asked by the first call that fails.
static CHECKED_ACCESS: AtomicBool = AtomicBool::new(true);

/// Copies bytes of the program into a place of ours.
///
/// # Safety
/// `into` points to `bytes` writable bytes.
pub(crate) unsafe fn fetch(from: usize, into: *mut u8, bytes: usize) -> Answer {
    if bytes == 0 {
        return Ok(());
    }
    if from == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if CHECKED_ACCESS.load(Ordering::Relaxed) {
        let local = libc::iovec { iov_base: into.cast(), iov_len: bytes };
        let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: bytes };
        // SAFETY: `local` names bytes that the caller of this function vouches for; the system checks `remote`.
        let moved =
            unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
        if moved == bytes as isize {
            return Ok(());
        }
        if !is_refused(moved) {
            return Err(Code::INVALID_VALUE);
        }
    }
    // SAFETY: the system does not let us ask; the API requires that the bytes are there.
    unsafe { std::ptr::copy(from as *const u8, into, bytes) };
    Ok(())
}

/// Copies bytes of ours to the program.
///
/// # Safety
/// `from` points to `bytes` readable bytes.
pub(crate) unsafe fn store(to: usize, from: *const u8, bytes: usize) -> Answer {
    if bytes == 0 {
        return Ok(());
    }
    if to == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if CHECKED_ACCESS.load(Ordering::Relaxed) {
        let local = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: bytes };
        let remote = libc::iovec { iov_base: to as *mut c_void, iov_len: bytes };
        // SAFETY: `local` names bytes that the caller of this function vouches for; the system checks `remote`.
        let moved =
            unsafe { libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
        if moved == bytes as isize {
            return Ok(());
        }
        if !is_refused(moved) {
            return Err(Code::INVALID_VALUE);
        }
    }
    // SAFETY: the system does not let us ask; the API requires that the bytes are there.
    unsafe { std::ptr::copy(from, to as *mut u8, bytes) };
    Ok(())
}

/// Copies bytes of the program into a slice.
pub(crate) fn fetch_slice(from: usize, into: &mut [u8]) -> Answer {
    // SAFETY: a slice is writable over its whole length.
    unsafe { fetch(from, into.as_mut_ptr(), into.len()) }
}

/// Whether a call failed because the system does not allow it at all, as some containers do not.
fn is_refused(moved: isize) -> bool {
    let error = std::io::Error::last_os_error().raw_os_error();
    let refused = moved < 0 && matches!(error, Some(libc::EPERM | libc::ENOSYS));
    if refused {
        CHECKED_ACCESS.store(false, Ordering::Relaxed);
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_without_memory_are_an_error() {
        let mut bytes = [0; 8];
        assert_eq!(fetch_slice(16, &mut bytes), Err(Code::INVALID_VALUE));
        assert_eq!(fetch_slice(0, &mut bytes), Err(Code::INVALID_VALUE));
        let source = [7_u8; 8];
        assert_eq!(fetch_slice(source.as_ptr().addr(), &mut bytes), Ok(()));
        assert_eq!(bytes, source);
    }

    #[test]
    fn a_null_result_is_an_error_and_a_text_is_cut() {
        assert_eq!(Out::<i32>(std::ptr::null_mut()).set(1), Err(Code::INVALID_VALUE));
        let mut room = [1 as c_char; 4];
        store_text(Out(room.as_mut_ptr()), 4, "kiln").unwrap();
        assert_eq!(room.map(|byte| byte as u8), *b"kil\0");
    }
}
