//! Matrix descriptors of `wgmma`: where in shared memory a matrix lies.
//!
//! A matrix consists of pieces of 16 bytes. If it is K-major, a piece holds neighbours along k of one row of A or one column of B; otherwise
//! it holds eight neighbouring rows or columns at one place along k. Eight pieces make a core matrix. How core matrices follow each other
//! depends on the swizzle, as the PTX ISA lists its canonical layouts.

use std::ops::Range;

use super::element::MatrixElement;
use crate::exec::tensor_map::TensorSwizzle;

/// Bytes of a piece.
pub(crate) const PIECE_BYTES: u64 = 16;
/// Pieces of a core matrix.
const CORE: u64 = 8;
/// Bytes of a matrix along k.
const DEPTH_BYTES: u64 = 32;
/// Bits of a descriptor that mean nothing and must be zero.
const RESERVED: u64 = 0b11 << 14 | 0b11 << 30 | 0b111 << 46 | 0x3ff << 52;

/// A descriptor, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixDescriptor {
    start: u64,
    /// The leading dimension byte offset.
    leading: u64,
    /// The stride dimension byte offset.
    stride: u64,
    base_offset: u64,
    swizzle: TensorSwizzle,
}

impl MatrixDescriptor {
    /// Takes a descriptor apart; in words what is wrong with it.
    pub(crate) fn decode(bits: u64) -> Result<Self, String> {
        if bits & RESERVED != 0 {
            return Err(format!(
                "the matrix descriptor {bits:#018x} has bits set that must be zero ({:#x}); addresses and offsets are encoded as \
                 `(x & 0x3ffff) >> 4`",
                bits & RESERVED
            ));
        }
        let field = |from: u32| (bits >> from & 0x3fff) * PIECE_BYTES;
        let swizzle = match bits >> 62 {
            0 => TensorSwizzle::None,
            1 => TensorSwizzle::B128,
            2 => TensorSwizzle::B64,
            _ => TensorSwizzle::B32,
        };
        let base_offset = bits >> 49 & 7;
        if swizzle == TensorSwizzle::None && base_offset != 0 {
            return Err(format!(
                "the matrix descriptor {bits:#018x} has the base offset {base_offset} and no swizzle; a base offset belongs to a swizzle"
            ));
        }
        Ok(Self { start: field(0), leading: field(16), stride: field(32), base_offset, swizzle })
    }

    /// Bytes of a row of the pattern of the swizzle; of a piece without one.
    fn row_bytes(&self) -> u64 {
        match self.swizzle {
            TensorSwizzle::None => PIECE_BYTES,
            TensorSwizzle::B32 => 32,
            TensorSwizzle::B64 => 64,
            TensorSwizzle::B128 => 128,
        }
    }

    /// Where a piece is whose place without the swizzle is so many bytes behind the start.
    fn place(&self, offset: u64) -> u64 {
        let address = self.start + offset;
        // A pattern that starts in the middle of 1024 bytes is turned by its base offset.
        let turned = address.wrapping_sub(self.base_offset << 7);
        address ^ (self.swizzle.place(turned) ^ turned)
    }

    /// A piece of a K-major matrix, by its row of A or column of B, and its number along k.
    fn k_major(&self, line: u64, piece: u64) -> u64 {
        let along = if self.swizzle == TensorSwizzle::None { self.leading } else { PIECE_BYTES };
        self.place(line % CORE * self.row_bytes() + line / CORE * self.stride + piece * along)
    }

    /// A piece of an M-major or N-major matrix, by its eight rows or columns, and its place along k.
    fn mn_major(&self, lines: u64, depth: u64) -> u64 {
        let (inner, outer) = (depth % CORE, depth / CORE);
        if self.swizzle == TensorSwizzle::None {
            return self.place(lines * self.stride + inner * PIECE_BYTES + outer * self.leading);
        }
        let wide = self.row_bytes() / PIECE_BYTES;
        let along = lines % wide * PIECE_BYTES + lines / wide * self.leading;
        self.place(along + inner * self.row_bytes() + outer * self.stride)
    }
}

/// A part of a matrix in shared memory: rows of A, or columns of B.
#[derive(Clone, Debug)]
pub(crate) struct SharedMatrix {
    pub(crate) descriptor: MatrixDescriptor,
    /// A multiple of eight of them.
    pub(crate) lines: Range<u64>,
    pub(crate) element: MatrixElement,
    /// Whether neighbours along k lie side by side.
    pub(crate) k_major: bool,
}

impl SharedMatrix {
    fn depth(&self) -> u64 {
        DEPTH_BYTES * 8 / u64::from(self.element.bits())
    }

    /// The addresses of its pieces.
    pub(crate) fn pieces(&self) -> Vec<u64> {
        let Self { descriptor, lines, .. } = self;
        if self.k_major {
            let pieces = DEPTH_BYTES / PIECE_BYTES;
            lines
                .clone()
                .flat_map(|line| (0..pieces).map(move |piece| descriptor.k_major(line, piece)))
                .collect()
        } else {
            let groups = lines.start / CORE..lines.end / CORE;
            let place = |depth: u64| groups.clone().map(move |group| descriptor.mn_major(group, depth));
            (0..self.depth()).flat_map(place).collect()
        }
    }

    /// Its elements line by line, from the bytes of its pieces one behind the other.
    pub(crate) fn elements(&self, bytes: &[u8]) -> Vec<u64> {
        let (lines, depth) = ((self.lines.end - self.lines.start) as usize, self.depth() as usize);
        let bits = self.element.bits() as usize;
        let element = |line: usize, at: usize| {
            if bits < 8 {
                let bit = line * depth + at;
                return u64::from(bytes.get(bit / 8).copied().unwrap_or(0) >> (bit % 8) & 1);
            }
            let place = if self.k_major { line * depth + at } else { at * lines + line };
            let own = bytes.iter().skip(place * (bits / 8)).take(bits / 8);
            own.rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        (0..lines * depth).map(|at| element(at / depth, at % depth)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_their_places() {
        let bits = 1 << 62 | 5 << 49 | 64 << 32 | 2 << 16 | 0x40;
        let wanted = MatrixDescriptor {
            start: 0x400,
            leading: 32,
            stride: 1024,
            base_offset: 5,
            swizzle: TensorSwizzle::B128,
        };
        assert_eq!(MatrixDescriptor::decode(bits), Ok(wanted));
        assert!(MatrixDescriptor::decode(1 << 14).is_err_and(|text| text.contains("must be zero")));
        assert!(MatrixDescriptor::decode(1 << 49).is_err_and(|text| text.contains("base offset 1")));
    }

    #[test]
    fn a_base_offset_turns_the_pattern() {
        let of = |start: u64, base: u64| {
            let bits = 1 << 62 | base << 49 | 64 << 32 | start >> 4;
            let descriptor = MatrixDescriptor::decode(bits).unwrap();
            (0..8).map(|line| descriptor.k_major(line, 1) - start).collect::<Vec<_>>()
        };
        assert_eq!(of(0x400, 0), of(0x580, 3));
        assert_ne!(of(0x400, 0), of(0x580, 0));
    }
}
