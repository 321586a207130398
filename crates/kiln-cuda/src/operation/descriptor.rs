//! Descriptors of libraries: what they keep of a matrix, a vector or a product.

use std::ffi::c_void;

use super::failure::LibraryFailure;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;

/// A descriptor, which lies in memory of the host. It is destroyed when it is dropped.
pub(super) struct Descriptor {
    raw: Native<c_void>,
    destroy: unsafe extern "C" fn(*mut c_void) -> i32,
}

impl Descriptor {
    /// What `create` makes in the place it is given. `call` is the name of the function.
    pub(super) fn make(
        library: LibraryKind,
        call: &'static str,
        destroy: unsafe extern "C" fn(*mut c_void) -> i32,
        create: impl FnOnce(*mut *mut c_void) -> i32,
    ) -> Result<Self, LibraryFailure> {
        let mut raw = Native::NULL;
        LibraryFailure::check(library, call, create(raw.slot()))?;
        Ok(Self { raw, destroy })
    }

    /// The descriptor as the library takes it.
    pub(super) fn raw(&self) -> *mut c_void {
        self.raw.raw()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: this is the only owner. It is memory of the host, so that no device is asked.
        unsafe { (self.destroy)(self.raw.raw()) };
    }
}
