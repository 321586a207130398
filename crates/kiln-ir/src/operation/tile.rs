//! Operations on tiles: matrices that the lanes of a warp hold together.

use super::{MemoryOperand, Operand};
use crate::declaration::TileId;
use crate::scalar_type::Type;
use crate::word_enum::word_enum;

/// Rows and columns of the smallest tile. Every tile is made of such pieces, and each lane holds four elements of each.
pub(crate) const FRAGMENT_ROWS: u32 = 16;
pub(crate) const FRAGMENT_COLUMNS: u32 = 8;

word_enum! {
    /// How a matrix lies in memory.
    pub enum MatrixLayout {
        /// The elements of a row are adjacent, and the stride is the distance of rows.
        RowMajor = "row_major",
        /// The elements of a column are adjacent, and the stride is the distance of columns.
        ColumnMajor = "column_major",
    }
}

/// A matrix in a buffer or in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixOperand {
    /// The buffer or shared memory.
    pub memory: MemoryOperand,
    /// The index of its first element, an integer that is the same in all lanes.
    pub start: Operand,
    /// Elements from the start of a row to that of the next, or of columns. An integer that is the same in all lanes.
    pub stride: Operand,
    /// Which of them it is.
    pub layout: MatrixLayout,
}

/// An operation of a warp on one of its tiles. All lanes execute it together with the same operands. It comes behind all
/// that the lanes of the warp did before it, and before all that they do later. The index of an element is the start,
/// plus the stride times its row or column, plus its place in there, in 64 bits that wrap. An element out of range is
/// loaded as 0 and not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOp {
    /// Sets all elements to one value.
    Fill {
        /// The tile.
        tile: TileId,
        /// The value, the same in all lanes.
        value: Operand,
    },
    /// Loads all elements.
    Load {
        /// The tile.
        tile: TileId,
        /// A matrix of as many rows and columns, whose elements have the type of the tile.
        from: MatrixOperand,
    },
    /// Stores all elements.
    Store {
        /// The tile.
        tile: TileId,
        /// A matrix of as many rows and columns, whose elements have the type of the tile.
        to: MatrixOperand,
    },
    /// Adds a product of two matrices to the tile. Products of `f16`, `bf16` and `f32` are summed in `f32`, those of
    /// `f64` in `f64`, those of `i8` in `i32`, which wraps. An `f32` is first rounded to 10 bits of fraction, to
    /// nearest, ties away from zero (TF32). Subnormals are kept, also in programs that flush them. The sum begins with
    /// the element of the tile and takes one fused product after the other along the depth, each rounded to nearest.
    /// Tensor cores add `f16`, `bf16` and `f32` in their own order and rounding: their result is the same where every
    /// partial sum is exact, and otherwise differs from the exact sum by at most (depth + 2) * 2^-22 times the sum of
    /// all magnitudes, if no partial sum overflows.
    MultiplyAdd {
        /// The tile.
        tile: TileId,
        /// A matrix with the rows of the tile and as many columns as the depth.
        a: MatrixOperand,
        /// A matrix with as many rows as the depth and the columns of the tile.
        b: MatrixOperand,
        /// How many products are added to an element: a multiple of 16 for `f16` and `bf16`, 8 for `f32`, 32 for `i8`,
        /// 4 for `f64`.
        depth: u32,
    },
}

impl TileOp {
    /// Its word in the text form.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Fill { .. } => "tile_fill",
            Self::Load { .. } => "tile_load",
            Self::Store { .. } => "tile_store",
            Self::MultiplyAdd { .. } => "tile_multiply_add",
        }
    }

    /// The words of all of them.
    pub(crate) const WORDS: [&'static str; 4] = ["tile_fill", "tile_load", "tile_store", "tile_multiply_add"];

    /// The tile it works on.
    pub const fn tile(&self) -> TileId {
        match self {
            Self::Fill { tile, .. }
            | Self::Load { tile, .. }
            | Self::Store { tile, .. }
            | Self::MultiplyAdd { tile, .. } => *tile,
        }
    }

    /// The matrices in memory.
    pub fn matrices(&self) -> Vec<MatrixOperand> {
        match self {
            Self::Fill { .. } => Vec::new(),
            Self::Load { from: matrix, .. } | Self::Store { to: matrix, .. } => vec![*matrix],
            Self::MultiplyAdd { a, b, .. } => vec![*a, *b],
        }
    }

    /// The operands, in the order in which the text form has them.
    pub fn operands(&self) -> Vec<Operand> {
        match self {
            Self::Fill { value, .. } => vec![*value],
            _ => self.matrices().iter().flat_map(|matrix| [matrix.start, matrix.stride]).collect(),
        }
    }

    /// The same with other operands, given in the same order.
    pub(crate) fn map_operands(&self, mut map: impl FnMut(Operand) -> Operand) -> Self {
        let mut matrix = |matrix: &MatrixOperand| {
            let (start, stride) = (map(matrix.start), map(matrix.stride));
            MatrixOperand { start, stride, ..*matrix }
        };
        match self {
            Self::Fill { tile, value } => Self::Fill { tile: *tile, value: map(*value) },
            Self::Load { tile, from } => Self::Load { tile: *tile, from: matrix(from) },
            Self::Store { tile, to } => Self::Store { tile: *tile, to: matrix(to) },
            Self::MultiplyAdd { tile, a, b, depth } => {
                let (a, b) = (matrix(a), matrix(b));
                Self::MultiplyAdd { tile: *tile, a, b, depth: *depth }
            }
        }
    }
}

impl MatrixOperand {
    /// How many lines of adjacent elements a matrix of this many rows and columns has, and their length.
    pub(crate) fn lines(&self, rows: u32, columns: u32) -> [u32; 2] {
        match self.layout {
            MatrixLayout::RowMajor => [rows, columns],
            MatrixLayout::ColumnMajor => [columns, rows],
        }
    }
}

/// A type that can be multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    /// The type of the sum.
    pub(crate) sum: Type,
    /// The depth of one step of a tensor core.
    pub(crate) step: u32,
}

impl Factor {
    /// How a type is multiplied, if it can be.
    pub(crate) const fn of(ty: Type) -> Option<Self> {
        match ty {
            Type::F16 | Type::Bf16 => Some(Self { sum: Type::F32, step: 16 }),
            Type::F32 => Some(Self { sum: Type::F32, step: 8 }),
            Type::I8 => Some(Self { sum: Type::I32, step: 32 }),
            Type::F64 => Some(Self { sum: Type::F64, step: 4 }),
            _ => None,
        }
    }
}
