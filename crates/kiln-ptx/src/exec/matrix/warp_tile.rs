//! Fragments of `wmma`: which thread holds which element of a matrix.
//!
//! The PTX ISA leaves that open. Here it is what `ptxas` makes of it for sm_80 and sm_90: a matrix is put together from the fragments of
//! `mma.m16n8`, first those that lie below each other, then those side by side. Fragments of `f16` have eight registers for every shape,
//! of which only the first hold something new; the others repeat them.

use super::element::{Accumulator, MatrixElement};
use super::fragment::Position;
use super::multiply::MultiplyShape;
use crate::exec::warp_register::{Column, LANES};

/// Registers of every `f16` fragment of A and B.
const HALF_REGISTERS: usize = 8;
/// The most bytes that the address of a row must be a multiple of: `wmma` of CUDA C asks for no more.
const STRIDE_BYTES: usize = 16;

/// Which matrix of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileElement {
    A(MatrixElement),
    B(MatrixElement),
    /// C or D.
    Sum(Accumulator),
}

/// A matrix of `wmma`, spread over a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpTile {
    pub(crate) shape: MultiplyShape,
    pub(crate) element: TileElement,
}

/// Elements of one register that lie next to each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) register: usize,
    pub(crate) part: usize,
    pub(crate) bytes: u32,
}

impl WarpTile {
    fn bits(&self) -> u32 {
        match self.element {
            TileElement::A(element) | TileElement::B(element) => element.bits(),
            TileElement::Sum(Accumulator::F16) => 16,
            TileElement::Sum(Accumulator::F64) => 64,
            TileElement::Sum(Accumulator::F32 | Accumulator::S32) => 32,
        }
    }

    /// Elements in one register.
    fn per_register(&self) -> usize {
        (32 / self.bits()).max(1) as usize
    }

    fn lines(&self) -> (usize, usize) {
        let MultiplyShape { m, n, k } = self.shape;
        let (m, n, k) = (usize::from(m), usize::from(n), usize::from(k));
        match self.element {
            TileElement::A(_) => (m, k),
            TileElement::B(_) => (k, n),
            TileElement::Sum(_) => (m, n),
        }
    }

    /// Registers that hold all elements once.
    pub(crate) fn distinct(&self) -> usize {
        let (rows, columns) = self.lines();
        rows * columns / (LANES * self.per_register())
    }

    /// Registers of the fragment.
    pub(crate) fn registers(&self) -> usize {
        match self.element {
            TileElement::A(MatrixElement::F16) | TileElement::B(MatrixElement::F16) => HALF_REGISTERS,
            _ => self.distinct(),
        }
    }

    /// Bytes that the address of the matrix is a multiple of: those of a fragment.
    pub(crate) fn align_bytes(&self) -> u64 {
        (self.registers() * if self.bits() == 64 { 8 } else { 4 }) as u64
    }

    /// Bytes that the distance of two lines in memory is a multiple of.
    pub(crate) fn stride_align_bytes(&self) -> u64 {
        self.align_bytes().min(STRIDE_BYTES as u64)
    }

    /// The distance of two lines in elements, where the program names none.
    pub(crate) fn default_stride(&self, row_major: bool) -> usize {
        let (rows, columns) = self.lines();
        if row_major { columns } else { rows }
    }

    /// Bytes of `elements` elements.
    pub(crate) fn bytes(&self, elements: u64) -> u64 {
        elements.wrapping_mul(u64::from(self.bits())) / 8
    }

    /// The element in part `part` of register `register` of a lane.
    fn position(&self, lane: usize, register: usize, part: usize) -> Position {
        let (group, in_group, per) = (lane / 4, lane % 4, self.per_register());
        let blocks = (usize::from(self.shape.k) / (4 * per)).max(1);
        match self.element {
            TileElement::A(_) => {
                let halves = usize::from(self.shape.m.min(16)) / 8;
                let (tile, register) = (register / (halves * blocks), register % (halves * blocks));
                let (half, block) = (register % halves, register / halves);
                Position {
                    row: group + 8 * half + 16 * tile,
                    column: in_group * per + part + 4 * per * block,
                }
            }
            TileElement::B(_) => {
                let (tile, block) = (register / blocks, register % blocks);
                Position { row: in_group * per + part + 4 * per * block, column: group + 8 * tile }
            }
            TileElement::Sum(_) => {
                let at = register * per + part;
                let halves = usize::from(self.shape.m.min(16)) / 8;
                let (tile, half) = (at / (2 * halves), at / 2 % halves);
                let (below, beside) = if self.shape.m == 32 { (16 * tile, 0) } else { (0, 8 * tile) };
                Position { row: group + 8 * half + below, column: in_group * 2 + at % 2 + beside }
            }
        }
    }

    /// The pieces in which each lane reads or writes its registers.
    pub(crate) fn pieces(&self, row_major: bool) -> Vec<Piece> {
        let per = self.per_register();
        let is_along_rows = !matches!(self.element, TileElement::B(_));
        let together = if is_along_rows == row_major { per } else { 1 };
        let bytes = self.bytes(together as u64) as u32;
        let parts =
            |register: usize| (0..per).step_by(together).map(move |part| Piece { register, part, bytes });
        (0..self.distinct()).flat_map(parts).collect()
    }

    /// How far a piece of a lane lies behind the start of the matrix, in elements.
    pub(crate) fn offset(&self, piece: Piece, lane: usize, row_major: bool, stride: u64) -> u64 {
        let Position { row, column } = self.position(lane, piece.register, piece.part);
        let (line, at) = if row_major { (row, column) } else { (column, row) };
        stride.wrapping_mul(line as u64).wrapping_add(at as u64)
    }

    /// All elements, row by row or column by column.
    pub(super) fn gather(&self, registers: &[Column], by_row: bool) -> Vec<u64> {
        let (rows, columns) = self.lines();
        let (per, bits) = (self.per_register(), self.bits());
        let mut elements = vec![0; rows * columns];
        for (register, column) in registers.iter().take(self.distinct()).enumerate() {
            for (lane, value) in column.iter().enumerate() {
                for part in 0..per {
                    let at = self.position(lane, register, part);
                    let place = if by_row { at.row * columns + at.column } else { at.column * rows + at.row };
                    elements[place] = (value >> (part as u32 * bits % 64)) & (u64::MAX >> (64 - bits));
                }
            }
        }
        elements
    }

    /// The registers of elements that are given row by row.
    pub(super) fn spread(&self, elements: &[u64]) -> Vec<Column> {
        let (_, columns) = self.lines();
        let (per, bits) = (self.per_register(), self.bits());
        let value = |lane: usize, register: usize| {
            (0..per).fold(0, |value, part| {
                let at = self.position(lane, register, part);
                value | elements[at.row * columns + at.column] << (part as u32 * bits % 64)
            })
        };
        (0..self.distinct()).map(|register| std::array::from_fn(|lane| value(lane, register))).collect()
    }
}
