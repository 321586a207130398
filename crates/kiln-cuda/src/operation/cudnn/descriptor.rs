//! A descriptor of cuDNN's backend API: made, given attributes, and finished.

use std::ffi::{CStr, c_char, c_void};

use super::enum_values::{Named, attribute_type};
use super::symbols::DnnApi;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;
use crate::operation::failure::LibraryFailure;

pub(super) type DnnResult<T> = Result<T, LibraryFailure>;
pub(super) type Raw = *mut c_void;

/// Bytes of cuDNN's last message at most.
const MESSAGE_BYTES: usize = 1024;

/// A descriptor, destroyed when it is dropped.
pub(super) struct Descriptor {
    api: &'static DnnApi,
    raw: Native<c_void>,
    kind: Named,
}

impl Descriptor {
    pub(super) fn new(api: &'static DnnApi, kind: Named) -> DnnResult<Self> {
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local.
        let status = unsafe { (api.create_descriptor)(kind.number, raw.slot()) };
        check(api, "cudnnBackendCreateDescriptor", status, || format!("a descriptor {}", kind.name))?;
        Ok(Self { api, raw, kind })
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw.raw()
    }

    pub(super) fn set_integers(&self, attribute: Named, values: &[i64]) -> DnnResult<()> {
        self.set(attribute, attribute_type::INT64, values)
    }

    pub(super) fn set_float(&self, attribute: Named, value: f32) -> DnnResult<()> {
        self.set(attribute, attribute_type::FLOAT, &[value])
    }

    pub(super) fn set_flag(&self, attribute: Named, value: bool) -> DnnResult<()> {
        self.set(attribute, attribute_type::BOOLEAN, &[value])
    }

    /// Sets an attribute to a number of the enum that is its type.
    pub(super) fn set_number(&self, attribute: Named, element: Named, value: i32) -> DnnResult<()> {
        self.set(attribute, element, &[value])
    }

    pub(super) fn set_handle(&self, attribute: Named, handle: Raw) -> DnnResult<()> {
        self.set(attribute, attribute_type::HANDLE, &[handle])
    }

    pub(super) fn set_pointers(&self, attribute: Named, pointers: &[Raw]) -> DnnResult<()> {
        self.set(attribute, attribute_type::VOID_PTR, pointers)
    }

    pub(super) fn set_descriptor(&self, attribute: Named, descriptor: &Self) -> DnnResult<()> {
        self.set(attribute, attribute_type::BACKEND_DESCRIPTOR, &[descriptor.raw()])
    }

    pub(super) fn set_descriptors(&self, attribute: Named, descriptors: &[Self]) -> DnnResult<()> {
        let raw: Vec<Raw> = descriptors.iter().map(Self::raw).collect();
        self.set(attribute, attribute_type::BACKEND_DESCRIPTOR, &raw)
    }

    fn set<T: Copy>(&self, attribute: Named, element: Named, values: &[T]) -> DnnResult<()> {
        // SAFETY: there are as many elements as is said, of the type that the header has for this number, and they are copied.
        let status = unsafe {
            let (count, values) = (values.len() as i64, values.as_ptr().cast());
            (self.api.set_attribute)(self.raw(), attribute.number, element.number, count, values)
        };
        check(self.api, "cudnnBackendSetAttribute", status, || self.part(attribute))
    }

    /// One number.
    pub(super) fn integer(&self, attribute: Named) -> DnnResult<i64> {
        let mut found = [0_i64];
        self.get(attribute, attribute_type::INT64, &mut found)?;
        Ok(found[0])
    }

    /// Numbers of an enum, as many as there is room for.
    pub(super) fn numbers(&self, attribute: Named, element: Named, room: usize) -> DnnResult<Vec<i32>> {
        let mut found = vec![0_i32; room];
        let count = self.get(attribute, element, &mut found)?;
        found.truncate(count);
        Ok(found)
    }

    /// How many descriptors an attribute has.
    pub(super) fn count(&self, attribute: Named) -> DnnResult<usize> {
        self.get::<Raw>(attribute, attribute_type::BACKEND_DESCRIPTOR, &mut [])
    }

    /// Fills descriptors that were made for it. Returns how many were filled.
    pub(super) fn fill(&self, attribute: Named, descriptors: &[Self]) -> DnnResult<usize> {
        let mut raw: Vec<Raw> = descriptors.iter().map(Self::raw).collect();
        self.get(attribute, attribute_type::BACKEND_DESCRIPTOR, &mut raw)
    }

    fn get<T>(&self, attribute: Named, element: Named, room: &mut [T]) -> DnnResult<usize> {
        let (mut count, len) = (0_i64, room.len());
        let place: Raw = if room.is_empty() { std::ptr::null_mut() } else { room.as_mut_ptr().cast() };
        // SAFETY: there is room for as many elements as is said, of the type that the header has for this number.
        let status = unsafe {
            let wanted = len as i64;
            (self.api.get_attribute)(self.raw(), attribute.number, element.number, wanted, &mut count, place)
        };
        check(self.api, "cudnnBackendGetAttribute", status, || self.part(attribute))?;
        let found = usize::try_from(count).unwrap_or(0);
        Ok(if len == 0 { found } else { found.min(len) })
    }

    /// Checks the attributes, after which the descriptor can be used.
    pub(super) fn finalize(self) -> DnnResult<Self> {
        // SAFETY: the descriptor is live.
        let status = unsafe { (self.api.finalize)(self.raw()) };
        check(self.api, "cudnnBackendFinalize", status, || format!("a descriptor {}", self.kind.name))?;
        Ok(self)
    }

    fn part(&self, attribute: Named) -> String {
        format!("the attribute {} of a descriptor {}", attribute.name, self.kind.name)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { (self.api.destroy_descriptor)(self.raw()) };
    }
}

/// Success, or the failure with what cuDNN says about it.
pub(super) fn check(
    api: &DnnApi,
    call: &'static str,
    status: i32,
    what: impl FnOnce() -> String,
) -> DnnResult<()> {
    if status == 0 {
        return Ok(());
    }
    let mut message = [0_u8; MESSAGE_BYTES];
    // SAFETY: there is room for as many bytes as is said; the other string is a constant of the library.
    let name = unsafe {
        (api.last_error_string)(message.as_mut_ptr().cast::<c_char>(), MESSAGE_BYTES);
        let name = (api.error_string)(status);
        if name.is_null() { c"no name" } else { CStr::from_ptr(name) }
    };
    let message = CStr::from_bytes_until_nul(&message).map(CStr::to_string_lossy).unwrap_or_default();
    let detail = format!("{}, {}; cuDNN says: {}", name.to_string_lossy(), what(), message.trim());
    Err(LibraryFailure { library: LibraryKind::Cudnn, call, status, detail })
}
