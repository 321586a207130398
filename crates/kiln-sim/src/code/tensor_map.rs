//! Tensor maps as simulated devices read them.

use kiln_driver::{Error, Result, TENSOR_MAP_BYTES, TensorMapBoxes, TensorMapRequest};
use kiln_ptx::exec::{
    TensorBoxes, TensorColumns, TensorElement, TensorFill, TensorInterleave, TensorMap, TensorMapError,
    TensorSwizzle,
};

const CALL: &str = "tensor_map";

/// The bytes of a tensor map.
pub(crate) fn encode(request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
    let map = TensorMap {
        address: request.address,
        element: one_of("element", &TensorElement::DRIVER, request.element)?,
        dimensions: request.dimensions.to_vec(),
        strides: request.strides.to_vec(),
        boxes: match request.boxes {
            TensorMapBoxes::Tile(boxes) => TensorBoxes::Tile(boxes.to_vec()),
            TensorMapBoxes::Im2col { lower_corner, upper_corner, channels, pixels } => {
                let (lower_corner, upper_corner) = (lower_corner.to_vec(), upper_corner.to_vec());
                TensorBoxes::Im2col(TensorColumns { lower_corner, upper_corner, channels, pixels })
            }
        },
        element_strides: request.element_strides.to_vec(),
        interleave: one_of(
            "interleave",
            &[TensorInterleave::None, TensorInterleave::B16, TensorInterleave::B32],
            request.interleave,
        )?,
        swizzle: one_of(
            "swizzle",
            &[TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128],
            request.swizzle,
        )?,
        fill: one_of("fill", &[TensorFill::Zero, TensorFill::Nan], request.fill)?,
    };
    refused_by_cuda(map.encode())
}

/// The same tensor map for a tensor at another address.
///
/// # Errors
/// Bytes that are no tensor map of a simulated device; an address that CUDA does not allow.
pub fn tensor_map_at(map: &[u8; TENSOR_MAP_BYTES], address: u64) -> Result<[u8; TENSOR_MAP_BYTES]> {
    let Some(known) = TensorMap::read(map) else {
        return Err(Error::invalid(CALL, "bytes that are no tensor map", "encode one first"));
    };
    refused_by_cuda(TensorMap { address, ..known }.encode())
}

fn refused_by_cuda(
    map: std::result::Result<[u8; TENSOR_MAP_BYTES], TensorMapError>,
) -> Result<[u8; TENSOR_MAP_BYTES]> {
    map.map_err(|error| Error::invalid(CALL, error.to_string(), "describe the tensor as CUDA asks"))
}

fn one_of<T: Copy>(what: &str, all: &[T], number: u32) -> Result<T> {
    all.get(number as usize).copied().ok_or_else(|| {
        let what = format!("{number} is no {what} of a tensor map on a simulated device");
        Error::invalid(CALL, what, "take one of the numbers that the simulated device knows")
    })
}
