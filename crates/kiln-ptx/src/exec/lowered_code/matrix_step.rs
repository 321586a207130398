//! Steps of tensor cores.

use super::*;
use crate::exec::matrix::{Multiply, TileForm, WarpMultiply};

/// What a warp does with matrices whose elements are spread over its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixStep {
    Multiply(Multiply),
    WarpMultiply(WarpMultiply),
    SparseMultiply(SparseMultiply),
    /// Lanes meet, and nothing more.
    Meet,
    /// All lanes name one matrix: its address and stride.
    SameTile,
    /// From rows that lanes have loaded to fragments.
    Distribute {
        matrices: usize,
        transposed: bool,
    },
    /// From fragments to the rows that lanes store.
    GatherRows {
        transposed: bool,
    },
    Transpose,
}

/// The addresses at which lanes read or write a matrix of `wmma`.
pub(crate) struct TileAddresses {
    pub(crate) tile: TileForm,
    pub(crate) place: Place,
    pub(crate) pointer: Source,
    pub(crate) offset: i64,
    /// In elements.
    pub(crate) stride: Source,
    pub(crate) loads: bool,
    /// One address for each piece.
    pub(crate) to: Box<[Reg]>,
}
