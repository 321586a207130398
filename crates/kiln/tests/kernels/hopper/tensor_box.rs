//! Random tensors and boxes of them, and where each element of a box lies: a loop over indices.

use kiln::tensor::{TensorElement, TensorFill, TensorMap, TensorSwizzle};
use kiln_kernels::Random;

/// A tensor with a box and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct TensorBox {
    pub(crate) element: TensorElement,
    pub(crate) dims: Vec<u64>,
    pub(crate) strides: Vec<u64>,
    pub(crate) boxes: Vec<u32>,
    pub(crate) steps: Vec<u32>,
    pub(crate) swizzle: TensorSwizzle,
    pub(crate) fill: TensorFill,
    pub(crate) at: Vec<i32>,
}

pub(crate) fn below(random: &mut Random, limit: u64) -> u64 {
    random.next() % limit
}

impl TensorBox {
    /// Rows are as long as the swizzle, or shorter.
    pub(crate) fn random(
        rank: usize,
        (swizzle, is_full): (TensorSwizzle, bool),
        element: TensorElement,
        random: &mut Random,
    ) -> Self {
        let size = u64::from(element.bytes());
        let pieces = swizzle.span_bytes().map_or(9, |span| u64::from(span) / 16);
        let row = 16 * if is_full { pieces } else { 1 + below(random, pieces) };
        let most = [0, 0, 12, 6, 4, 3][rank];
        let mut boxes = vec![(row / size).min(256) as u32];
        let mut steps = vec![1];
        for _ in 1..rank {
            steps.push([1, 1, 1, 2, 3][below(random, 5) as usize]);
            boxes.push(1 + below(random, most) as u32);
        }
        let dims: Vec<u64> = boxes.iter().map(|size| 1 + below(random, 2 * u64::from(*size))).collect();
        let mut strides = Vec::new();
        let mut bytes = dims[0] * size;
        for dim in &dims[1..] {
            bytes = bytes.next_multiple_of(16) + 16 * below(random, 2);
            strides.push(bytes);
            bytes *= dim;
        }
        let at = dims.iter().zip(&boxes).map(|(dim, size)| {
            let reach = i64::from(*size).min(4);
            random.within(-reach, *dim as i64 + 1) as i32
        });
        let mut at: Vec<i32> = at.collect();
        // A row of the box begins at a multiple of 16 bytes: the H200 refuses others.
        let piece = (16 / size) as i32;
        at[0] = at[0].div_euclid(piece) * piece;
        Self { element, dims, strides, boxes, steps, swizzle, fill: TensorFill::Zero, at }
    }

    pub(crate) fn map(&self) -> TensorMap {
        TensorMap::tiled(0, self.element, &self.dims, &self.boxes)
            .with_strides(&self.strides)
            .with_element_strides(&self.steps)
            .with_swizzle(self.swizzle)
            .with_fill(self.fill)
    }

    pub(crate) fn tensor_bytes(&self) -> usize {
        self.map().tensor_bytes() as usize
    }

    pub(crate) fn counts(&self) -> Vec<u64> {
        self.boxes.iter().zip(&self.steps).map(|(size, step)| u64::from(size.div_ceil(*step))).collect()
    }

    pub(crate) fn box_bytes(&self) -> usize {
        (self.counts().iter().product::<u64>() * u64::from(self.element.bytes())) as usize
    }

    /// The same for what is stored, which cannot begin in front of the tensor on an H200.
    pub(crate) fn within(mut self) -> Self {
        self.at.iter_mut().for_each(|at| *at = (*at).max(0));
        self
    }

    /// Bytes from one row of the box to the next in shared memory: as many as the swizzle exchanges pieces in.
    fn pitch(&self) -> u64 {
        let row = u64::from(self.boxes[0] * self.element.bytes());
        self.swizzle.span_bytes().map_or(row, u64::from).max(row)
    }

    /// Room for the box in whole patterns of the largest swizzle.
    pub(crate) fn room(&self) -> usize {
        let rows = self.counts()[1..].iter().product::<u64>();
        (rows * self.pitch()).next_multiple_of(1024) as usize
    }

    /// Stores and reductions update whole pieces of 16 bytes, also those that the rows of the tensor end in: the tensor as they see it.
    pub(crate) fn in_pieces(&self) -> Self {
        let piece = 16 / u64::from(self.element.bytes());
        let mut other = self.clone();
        other.dims[0] = other.dims[0].next_multiple_of(piece);
        other
    }

    /// Calls `visit` with the place of each element of the box in shared memory, and its place in the tensor if it is inside.
    pub(crate) fn each(&self, mut visit: impl FnMut(usize, Option<usize>)) {
        let (counts, size) = (self.counts(), u64::from(self.element.bytes()));
        for number in 0..counts.iter().product::<u64>() {
            let (mut rest, mut offset, mut is_inside) = (number, 0, true);
            for (dimension, count) in counts.iter().enumerate() {
                let index = rest % count;
                rest /= count;
                let place = i64::from(self.at[dimension]) + (index * u64::from(self.steps[dimension])) as i64;
                is_inside &= place >= 0 && place < self.dims[dimension] as i64;
                let stride = if dimension == 0 { size } else { self.strides[dimension - 1] };
                offset += place * stride as i64;
            }
            let place = number / counts[0] * self.pitch() + number % counts[0] * size;
            visit(swizzled(self.swizzle, place) as usize, is_inside.then_some(offset as usize));
        }
    }

    /// All that tells it from others.
    pub(crate) fn name(&self) -> String {
        let Self { element, dims, strides, boxes, steps, swizzle, fill, at } = self;
        let row = boxes[0] * element.bytes();
        format!(
            "{element:?} swizzle {swizzle:?} rows of {row} bytes, dims {dims:?} strides {strides:?} box {boxes:?} steps {steps:?} at {at:?} fill {fill:?}"
        )
    }
}

/// Where a byte of a box lies: the tables of the PTX ISA, in which the pieces of 16 bytes of a line of 128 bytes change places.
pub(crate) fn swizzled(swizzle: TensorSwizzle, offset: u64) -> u64 {
    let (line, piece, byte) = (offset / 128, offset % 128 / 16, offset % 16);
    let exchange = match swizzle {
        TensorSwizzle::None => 0,
        TensorSwizzle::B32 => line % 2,
        TensorSwizzle::B64 => line % 4,
        TensorSwizzle::B128 => line % 8,
    };
    line * 128 + (piece ^ exchange) * 16 + byte
}
