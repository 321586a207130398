//! What a tool is told of a range or a mark.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// The version of the layout below.
const VERSION: u16 = 3;
const PAYLOAD_UNSIGNED: i32 = 1;
const MESSAGE_ASCII: i32 = 1;

/// The layout that NVTX has for it, of 48 bytes.
#[repr(C)]
pub(super) struct EventAttributes<'a> {
    version: u16,
    size: u16,
    category: u32,
    color_kind: i32,
    color: u32,
    payload_kind: i32,
    reserved: i32,
    payload: u64,
    message_kind: i32,
    message: *const c_char,
    text: PhantomData<&'a CStr>,
}

impl<'a> EventAttributes<'a> {
    pub(super) fn new(text: &'a CStr, number: Option<u64>) -> Self {
        Self {
            version: VERSION,
            size: size_of::<Self>() as u16,
            category: 0,
            color_kind: 0,
            color: 0,
            payload_kind: if number.is_some() { PAYLOAD_UNSIGNED } else { 0 },
            reserved: 0,
            payload: number.unwrap_or_default(),
            message_kind: MESSAGE_ASCII,
            message: text.as_ptr(),
            text: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_headers_have_them() {
        use std::mem::offset_of;
        assert_eq!(size_of::<EventAttributes<'_>>(), 48);
        assert_eq!(offset_of!(EventAttributes<'_>, payload_kind), 16);
        assert_eq!(offset_of!(EventAttributes<'_>, payload), 24);
        assert_eq!(offset_of!(EventAttributes<'_>, message_kind), 32);
        assert_eq!(offset_of!(EventAttributes<'_>, message), 40);
    }
}
