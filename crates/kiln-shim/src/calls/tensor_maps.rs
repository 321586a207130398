//! Tensor maps: the simulated device writes them.

use std::ffi::{c_int, c_uint};

use kiln_driver::{Code, TENSOR_MAP_BYTES, TensorMapBoxes, TensorMapRequest};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::process_state::current;
use crate::records;

type Map = Out<[u8; TENSOR_MAP_BYTES]>;

/// What the address of a tensor map is a multiple of.
const ALIGN_BYTES: usize = 64;
/// The most dimensions of a tensor.
const MOST_DIMENSIONS: usize = 5;
/// Elements and swizzles that simulated devices have; CUDA has some more.
const ELEMENTS: [c_uint; 2] = [13, 16];
const SWIZZLES: [c_uint; 2] = [4, 7];
/// How many promotions there are. They are hints for a cache, which simulated devices do not have.
const PROMOTIONS: c_uint = 4;

/// What both kinds of maps say.
#[derive(Clone, Copy)]
struct Tensor {
    element: c_uint,
    rank: c_uint,
    address: u64,
    dimensions: In<u64>,
    strides: In<u64>,
    element_strides: In<c_uint>,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
}

impl Tensor {
    /// How many dimensions it has, if so many are possible.
    fn rank(&self) -> Answer<usize> {
        let rank = self.rank as usize;
        if (1..=MOST_DIMENSIONS).contains(&rank) { Ok(rank) } else { Err(Code::INVALID_VALUE) }
    }

    /// Writes the map.
    fn encode(&self, name: &'static str, out: Map, boxes: TensorMapBoxes<'_>) -> Answer {
        out.check()?;
        let rank = self.rank()?;
        if !out.address().is_multiple_of(ALIGN_BYTES) || self.promotion >= PROMOTIONS {
            return Err(Code::INVALID_VALUE);
        }
        is_simulated(name, "element", self.element, ELEMENTS)?;
        is_simulated(name, "swizzle", self.swizzle, SWIZZLES)?;
        let dimensions = list(self.dimensions, rank)?;
        let strides = list(self.strides, rank - 1)?;
        let element_strides = list(self.element_strides, rank)?;
        let request = TensorMapRequest {
            address: self.address,
            element: self.element,
            dimensions: &dimensions,
            strides: &strides,
            element_strides: &element_strides,
            boxes,
            interleave: self.interleave,
            swizzle: self.swizzle,
            fill: self.fill,
        };
        let map = current()?.1.driver.tensor_map(&request).inspect_err(|error| {
            let text = format!("{name} answered CUDA_ERROR_INVALID_VALUE: {error}");
            records::note_once(&text, &text);
        });
        out.set(map.or_code()?)
    }
}

/// Refuses what CUDA has and simulated devices have not, and what CUDA has not either.
fn is_simulated(name: &'static str, what: &str, number: c_uint, [simulated, known]: [c_uint; 2]) -> Answer {
    if number < simulated {
        return Ok(());
    }
    if number >= known {
        return Err(Code::INVALID_VALUE);
    }
    let text =
        format!("{name} answered CUDA_ERROR_NOT_SUPPORTED: {what} {number} of a tensor map is not simulated");
    records::note_once(&text, &text);
    Err(Code::NOT_SUPPORTED)
}

fn list<T: Copy>(from: In<T>, count: usize) -> Answer<Vec<T>> {
    (0..count).map(|index| from.at(index)).collect()
}

driver_api! {
    fn cuTensorMapEncodeTiled(
        out: Map, element: c_uint, rank: c_uint, address: u64, dimensions: In<u64>, strides: In<u64>, boxes: In<c_uint>,
        element_strides: In<c_uint>, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint
    ) {
        let tensor =
            Tensor { element, rank, address, dimensions, strides, element_strides, interleave, swizzle, promotion, fill };
        let boxes = list(boxes, tensor.rank()?)?;
        tensor.encode("cuTensorMapEncodeTiled", out, TensorMapBoxes::Tile(&boxes))
    }

    fn cuTensorMapEncodeIm2col(
        out: Map, element: c_uint, rank: c_uint, address: u64, dimensions: In<u64>, strides: In<u64>, lower: In<c_int>,
        upper: In<c_int>, channels: c_uint, pixels: c_uint, element_strides: In<c_uint>, interleave: c_uint, swizzle: c_uint,
        promotion: c_uint, fill: c_uint
    ) {
        let tensor =
            Tensor { element, rank, address, dimensions, strides, element_strides, interleave, swizzle, promotion, fill };
        // Images and channels have no corners.
        let corners = tensor.rank()?.checked_sub(2).ok_or(Code::INVALID_VALUE)?;
        let (lower, upper) = (list(lower, corners)?, list(upper, corners)?);
        let boxes = TensorMapBoxes::Im2col { lower_corner: &lower, upper_corner: &upper, channels, pixels };
        tensor.encode("cuTensorMapEncodeIm2col", out, boxes)
    }

    fn cuTensorMapReplaceAddress(map: Map, address: u64) {
        let (state, _) = current()?;
        state.backend.machine("cuTensorMapReplaceAddress")?;
        let bytes = map.get()?;
        if !map.address().is_multiple_of(ALIGN_BYTES) {
            return Err(Code::INVALID_VALUE);
        }
        map.set(kiln_sim::tensor_map_at(&bytes, address).or_code()?)
    }
}
