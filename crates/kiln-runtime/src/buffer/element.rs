//! The trait `Element`: types whose values a device buffer can hold.

use bytemuck::Pod;

use crate::error::{Error, Misuse, Result};

/// Types whose bytes mean the same on host and device: plain numbers, half precision, complex numbers, arrays and `repr(C)`
/// structs of them. Everything that is [`Pod`] is an element.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// The bytes of so many elements, refused where no device and no host has as many.
pub(super) fn bytes_of<T: Element>(len: usize) -> Result<u64> {
    (len as u64)
        .checked_mul(size_of::<T>() as u64)
        .filter(|bytes| *bytes <= i64::MAX as u64)
        .ok_or_else(|| Error::new(Misuse::TooLarge { len, element_bytes: size_of::<T>() }))
}
