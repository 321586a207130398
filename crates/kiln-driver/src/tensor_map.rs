//! Tensor maps: what a device needs to know to write one, and the part of a driver that writes it.

use crate::error::Result;

/// The part of a [`Driver`](crate::Driver) that writes tensor maps. It stands apart because it only computes: nothing on the device changes, and no object
/// is made.
pub trait TensorMaps {
    /// The bytes of a tensor map, as kernels of this device read them. The memory behind the address is not looked at.
    ///
    /// # Errors
    /// Refused for a description that CUDA does not allow; unsupported where there are no tensor copies; lost.
    fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]>;
}

/// Bytes of a tensor map.
pub const TENSOR_MAP_BYTES: usize = 128;

/// A tensor, and the boxes of it that tensor copies move. Dimensions are named from the innermost on, and numbers that stand for something are those of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapRequest<'a> {
    /// The address of the first element.
    pub address: u64,
    /// What an element is: a `CUtensorMapDataType`.
    pub element: u32,
    /// Elements in each dimension.
    pub dimensions: &'a [u64],
    /// Bytes from one element to the next in each dimension but the innermost.
    pub strides: &'a [u64],
    /// Steps from one element of a box to the next, in each dimension.
    pub element_strides: &'a [u32],
    /// What a copy moves.
    pub boxes: TensorMapBoxes<'a>,
    /// A `CUtensorMapInterleave`.
    pub interleave: u32,
    /// A `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// A `CUtensorMapFloatOOBfill`.
    pub fill: u32,
}

/// What a tensor copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorMapBoxes<'a> {
    /// A box with so many elements in each dimension.
    Tile(&'a [u32]),
    /// A column of pixels.
    Im2col {
        /// Where the pixels begin, width first.
        lower_corner: &'a [i32],
        /// Where they end.
        upper_corner: &'a [i32],
        /// Channels of each pixel.
        channels: u32,
        /// Pixels of a column.
        pixels: u32,
    },
}
