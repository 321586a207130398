//! Tensor maps: the driver writes their bytes.

use std::ffi::c_void;

use cudarc::driver::sys;
use kiln_driver::{Error, Result, TENSOR_MAP_BYTES, TensorMapBoxes, TensorMapRequest};

use crate::device::CudaDevice;

const CALL: &str = "tensor_map";
/// The most dimensions of a tensor, and of the corners of a column.
const MAX_RANK: usize = 5;

/// A tensor map is aligned to 64 bytes.
#[repr(C, align(64))]
struct Map([u8; TENSOR_MAP_BYTES]);

impl CudaDevice {
    pub(crate) fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        let api = self.context.enter(CALL)?;
        let (Some(tiled), Some(columns)) = (api.tensor_map_tiled, api.tensor_map_im2col) else {
            return Err(Error::unsupported(
                CALL,
                "a tensor map",
                "the driver is older than CUDA 12.0; install a newer one",
            ));
        };
        let rank = request.dimensions.len();
        check_lengths(request)?;
        // The driver may read as many numbers as the highest rank has.
        let dimensions: [u64; MAX_RANK] = padded(request.dimensions, 1);
        let strides: [u64; MAX_RANK] = padded(request.strides, 0);
        let steps: [u32; MAX_RANK] = padded(request.element_strides, 1);
        let mut map = Map([0; TENSOR_MAP_BYTES]);
        let into = (&raw mut map).cast::<sys::CUtensorMap>();
        let address = request.address as *mut c_void;
        let status = match request.boxes {
            TensorMapBoxes::Tile(boxes) => {
                let boxes: [u32; MAX_RANK] = padded(boxes, 1);
                // SAFETY: the map is a live local with the size and alignment of a tensor map, the arrays are live locals with a number for each
                // dimension, and the address is only written down: no memory behind it is reached.
                unsafe {
                    tiled(
                        into,
                        request.element,
                        rank as u32,
                        address,
                        dimensions.as_ptr(),
                        strides.as_ptr(),
                        boxes.as_ptr(),
                        steps.as_ptr(),
                        request.interleave,
                        request.swizzle,
                        0,
                        request.fill,
                    )
                }
            }
            TensorMapBoxes::Im2col { lower_corner, upper_corner, channels, pixels } => {
                let lower: [i32; MAX_RANK] = padded(lower_corner, 0);
                let upper: [i32; MAX_RANK] = padded(upper_corner, 0);
                // SAFETY: as above.
                unsafe {
                    columns(
                        into,
                        request.element,
                        rank as u32,
                        address,
                        dimensions.as_ptr(),
                        strides.as_ptr(),
                        lower.as_ptr(),
                        upper.as_ptr(),
                        channels,
                        pixels,
                        steps.as_ptr(),
                        request.interleave,
                        request.swizzle,
                        0,
                        request.fill,
                    )
                }
            }
        };
        self.context.check(CALL, status)?;
        Ok(map.0)
    }
}

/// The lists must have a number for each dimension: the driver reads so many.
fn check_lengths(request: &TensorMapRequest<'_>) -> Result<()> {
    let rank = request.dimensions.len();
    let fits = (1..=MAX_RANK).contains(&rank)
        && request.strides.len() + 1 == rank
        && request.element_strides.len() == rank
        && match request.boxes {
            TensorMapBoxes::Tile(boxes) => boxes.len() == rank,
            TensorMapBoxes::Im2col { lower_corner, upper_corner, .. } => {
                lower_corner.len() + 2 == rank && upper_corner.len() + 2 == rank
            }
        };
    match fits {
        true => Ok(()),
        false => Err(Error::invalid(
            CALL,
            format!("lists that do not fit a tensor of {rank} dimensions"),
            "give a number for each of one to five dimensions, and a stride for each but the first",
        )),
    }
}

fn padded<T: Copy, const N: usize>(list: &[T], rest: T) -> [T; N] {
    std::array::from_fn(|at| list.get(at).copied().unwrap_or(rest))
}
