//! What a buffer can hold.

use bytemuck::Pod;

/// Types whose bytes mean the same on host and device: plain numbers, half precision, complex numbers, arrays and `repr(C)`
/// structs of them. Everything that is [`Pod`] is an element.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}
