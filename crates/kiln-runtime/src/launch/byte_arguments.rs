//! Arguments that are given as borrowed bytes.

use kiln_driver::Access;

use super::builder::Launch;
use crate::buffer::BufferBytes;

/// The next argument of a launch: bytes of a buffer.
#[inline]
pub fn pass_bytes<'a, T>(launch: &mut Launch<'a, T>, bytes: BufferBytes<'a>, access: Access) {
    launch.bytes(bytes, access);
}
