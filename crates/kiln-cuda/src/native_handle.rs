//! A handle of the CUDA driver that may cross threads.

use std::ptr;

/// An opaque pointer that libcuda returned. It is never dereferenced here.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Native<T>(*mut T);

// SAFETY: the pointer is never dereferenced here; it is only passed back to libcuda, whose entry points take handles from any thread.
unsafe impl<T> Send for Native<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Native<T> {}

impl<T> Clone for Native<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Native<T> {}

impl<T> PartialEq for Native<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Native<T> {
    /// The null handle, to be filled by a call.
    pub(crate) const NULL: Self = Self(ptr::null_mut());

    /// A handle that another library made, from its number.
    pub(crate) fn from_number(number: u64) -> Self {
        Self(ptr::without_provenance_mut(number as usize))
    }

    /// The handle as a number, for libraries that call CUDA themselves.
    pub(crate) fn number(self) -> u64 {
        self.0 as usize as u64
    }

    /// The handle as libcuda takes it.
    pub(crate) fn raw(self) -> *mut T {
        self.0
    }

    /// Where a call writes the handle it makes.
    pub(crate) fn slot(&mut self) -> *mut *mut T {
        &mut self.0
    }
}
