//! Which thread of a warp holds which element of a matrix, as the PTX ISA defines it for `mma` and `wgmma`.

use super::element::{Accumulator, MatrixElement};
use super::multiply::MultiplyShape;

/// One element: the row and column in its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) row: usize,
    pub(super) column: usize,
}

/// The element of A (rows by k) in part `part` of register `register` of a lane.
pub(super) fn of_a(
    lane: usize,
    register: usize,
    part: usize,
    shape: MultiplyShape,
    ty: MatrixElement,
) -> Position {
    let (group, in_group) = (lane / 4, lane % 4);
    let per = ty.per_register();
    let halves = usize::from(shape.m) / 8;
    let (half, block) = (register % halves, register / halves);
    Position { row: group + 8 * half, column: in_group * per + part + 4 * per * block }
}

/// The element of B (k by columns).
pub(super) fn of_b(lane: usize, register: usize, part: usize, ty: MatrixElement) -> Position {
    let per = ty.per_register();
    Position { row: lane % 4 * per + part + 4 * per * register, column: lane / 4 }
}

/// The element of C and D (rows by columns); eight columns stand behind each other.
pub(super) fn of_c(lane: usize, register: usize, part: usize, ty: Accumulator) -> Position {
    let at = register * ty.per_register() + part;
    Position { row: lane / 4 + 8 * (at / 2 % 2), column: lane % 4 * 2 + at % 2 + 8 * (at / 4) }
}
