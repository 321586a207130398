//! Tensor cores: `mma`, `mma.sp`, `wmma`, `wgmma`, and the instructions that move 8 by 8 matrices between threads.
//!
//! An instruction is done by all 32 threads of a warp together. [`Multiply`] is one form of `mma` as data, [`fragment`] says which thread
//! holds which element, and [`dot`] has the arithmetic of one element of the result as an H200 does it.

mod descriptor;
mod dot;
mod element;
mod fragment;
mod multiply;
mod sparse;
mod tile;
mod warp_matrix;
mod warp_tile;
mod warpgroup;

pub(crate) use descriptor::{MatrixDescriptor, PIECE_BYTES, SharedMatrix};
pub(crate) use multiply::{Multiply, MultiplyShape};
pub(crate) use sparse::SparseMultiply;
pub(crate) use tile::{TRANSPOSE, Tiles, distribute, gather_rows, transpose};
pub(crate) use warp_matrix::{TileForm, WarpMatrix, WarpMultiply};
pub(crate) use warp_tile::Piece;
pub(crate) use warpgroup::{WARP_ROWS, WarpgroupMultiply, negated};

use crate::{Form, Opcode};

/// Whether an instruction of the tensor cores is one of those that are run.
pub(crate) fn is_run(form: &Form) -> bool {
    match form.opcode() {
        Opcode::Mma => Multiply::named(form.text()).is_some() || SparseMultiply::named(form.text()).is_some(),
        Opcode::Wmma => WarpMatrix::named(form.text()).is_some(),
        Opcode::Wgmma => is_group_step(form.text()) || WarpgroupMultiply::named(form.text()).is_some(),
        Opcode::Ldmatrix | Opcode::Stmatrix => Tiles::of(form).is_some(),
        Opcode::Movmatrix => form.text() == TRANSPOSE,
        _ => false,
    }
}

fn is_group_step(text: &str) -> bool {
    matches!(text, WARPGROUP_FENCE | COMMIT_GROUP | WAIT_GROUP)
}

/// Orders registers of products and those of other instructions.
pub(crate) const WARPGROUP_FENCE: &str = "wgmma.fence.sync.aligned";
/// Puts products into a group.
pub(crate) const COMMIT_GROUP: &str = "wgmma.commit_group.sync.aligned";
/// Waits for groups of products.
pub(crate) const WAIT_GROUP: &str = "wgmma.wait_group.sync.aligned";
