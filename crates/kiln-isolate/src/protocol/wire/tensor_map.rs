//! Tensor maps that the worker writes.

use kiln_driver::{TENSOR_MAP_BYTES, TensorMapBoxes, TensorMapRequest};

use super::reader::{Malformed, Reader};
use super::writer::{Put, Take, Writer, in_order};

/// A tensor map to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WireTensorMap {
    pub(crate) address: u64,
    pub(crate) element: u32,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) strides: Vec<u64>,
    pub(crate) element_strides: Vec<u32>,
    pub(crate) boxes: WireBoxes,
    pub(crate) interleave: u32,
    pub(crate) swizzle: u32,
    pub(crate) fill: u32,
}

/// What its copies move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WireBoxes {
    Tile(Vec<u32>),
    Im2col { lower_corner: Vec<i32>, upper_corner: Vec<i32>, channels: u32, pixels: u32 },
}

impl WireTensorMap {
    pub(crate) fn of(request: &TensorMapRequest<'_>) -> Self {
        Self {
            address: request.address,
            element: request.element,
            dimensions: request.dimensions.to_vec(),
            strides: request.strides.to_vec(),
            element_strides: request.element_strides.to_vec(),
            boxes: match request.boxes {
                TensorMapBoxes::Tile(boxes) => WireBoxes::Tile(boxes.to_vec()),
                TensorMapBoxes::Im2col { lower_corner, upper_corner, channels, pixels } => {
                    let (lower_corner, upper_corner) = (lower_corner.to_vec(), upper_corner.to_vec());
                    WireBoxes::Im2col { lower_corner, upper_corner, channels, pixels }
                }
            },
            interleave: request.interleave,
            swizzle: request.swizzle,
            fill: request.fill,
        }
    }

    /// As the driver takes it.
    pub(crate) fn request(&self) -> TensorMapRequest<'_> {
        TensorMapRequest {
            address: self.address,
            element: self.element,
            dimensions: &self.dimensions,
            strides: &self.strides,
            element_strides: &self.element_strides,
            boxes: match &self.boxes {
                WireBoxes::Tile(boxes) => TensorMapBoxes::Tile(boxes),
                WireBoxes::Im2col { lower_corner, upper_corner, channels, pixels } => {
                    TensorMapBoxes::Im2col {
                        lower_corner,
                        upper_corner,
                        channels: *channels,
                        pixels: *pixels,
                    }
                }
            },
            interleave: self.interleave,
            swizzle: self.swizzle,
            fill: self.fill,
        }
    }
}

in_order! {
    WireTensorMap { address, element, dimensions, strides, element_strides, boxes, interleave, swizzle, fill }
}

impl Put for WireBoxes {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::Tile(boxes) => {
                to.u8(0);
                boxes.put(to);
            }
            Self::Im2col { lower_corner, upper_corner, channels, pixels } => {
                to.u8(1);
                lower_corner.put(to);
                upper_corner.put(to);
                to.u32(*channels);
                to.u32(*pixels);
            }
        }
    }
}

impl Take for WireBoxes {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match from.u8()? {
            0 => Ok(Self::Tile(Take::take(from)?)),
            1 => Ok(Self::Im2col {
                lower_corner: Take::take(from)?,
                upper_corner: Take::take(from)?,
                channels: from.u32()?,
                pixels: from.u32()?,
            }),
            _ => Err(Malformed { what: "unknown boxes of a tensor map" }),
        }
    }
}

/// The bytes of a tensor map, as the worker answers them.
pub(crate) fn take_tensor_map(from: &mut Reader<'_>) -> Result<[u8; TENSOR_MAP_BYTES], Malformed> {
    from.array()
}
