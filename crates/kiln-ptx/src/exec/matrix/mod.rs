//! Tensor cores: `mma`, and the instructions that move 8 by 8 matrices between threads.
//!
//! An instruction is done by all 32 threads of a warp together. [`Multiply`] is one form of `mma` as data, [`fragment`] says which thread
//! holds which element, and [`dot`] has the arithmetic of one element of the result as an H200 does it.

mod dot;
mod element;
mod fragment;
mod multiply;
mod tile;

pub(crate) use multiply::Multiply;
pub(crate) use tile::{TRANSPOSE, Tiles, distribute, gather_rows, transpose};

use crate::{Form, Opcode};

/// Whether an instruction of the tensor cores is one of those that are run.
pub(crate) fn is_run(form: &Form) -> bool {
    match form.opcode() {
        Opcode::Mma => Multiply::named(form.text()).is_some(),
        Opcode::Ldmatrix | Opcode::Stmatrix => Tiles::of(form).is_some(),
        Opcode::Movmatrix => form.text() == TRANSPOSE,
        _ => false,
    }
}
