//! One form of `wgmma.mma_async`, for one of the four warps of a warpgroup.
//!
//! Each warp computes 16 of the 64 rows of D, in fragments like those of `mma`. So here it is a [`Multiply`] of 16 rows and up to 256 columns.

use super::element::{Accumulator, MatrixElement};
use super::multiply::{BitProduct, Multiply, MultiplyShape};
use crate::exec::alu::Round;
use crate::exec::warp_register::Column;

/// Rows of D that a warp computes.
pub(crate) const WARP_ROWS: u64 = 16;
/// Registers of A in each thread.
const A_REGISTERS: usize = 4;

/// `D = A B + D` or `D = A B` for the rows of one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpgroupMultiply {
    multiply: Multiply,
}

impl WarpgroupMultiply {
    /// The form that a dotted word names; `None` for those that do not exist or are not run.
    ///
    /// `wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16`
    pub(crate) fn named(text: &str) -> Option<Self> {
        let mut words = text.split('.').peekable();
        for expected in ["wgmma", "mma_async", "sync", "aligned"] {
            words.next().filter(|word| *word == expected)?;
        }
        let shape = MultiplyShape::named(words.next()?).filter(|shape| shape.m == 64)?;
        let before = words.next_if_eq(&"satfinite").is_some();
        let sum = Accumulator::named(words.next()?)?;
        let (a, b) = (MatrixElement::named(words.next()?)?, MatrixElement::named(words.next()?)?);
        let is_bits = a == MatrixElement::B1;
        if is_bits && (words.next(), words.next()) != (Some("and"), Some("popc")) {
            return None;
        }
        let satfinite = before || words.next_if_eq(&"satfinite").is_some();
        let bits = BitProduct::And;
        let shape = MultiplyShape { m: WARP_ROWS as u16, ..shape };
        let multiply = Multiply { shape, a, b, sum, satfinite, bits, round: Round::Nearest, at_once: true };
        (words.next().is_none() && exists(&multiply)).then_some(Self { multiply })
    }

    /// Its shape: products of one shape that add to the same registers are done in order.
    pub(crate) fn shape(&self) -> MultiplyShape {
        self.multiply.shape
    }

    pub(crate) fn a(&self) -> MatrixElement {
        self.multiply.a
    }

    pub(crate) fn b(&self) -> MatrixElement {
        self.multiply.b
    }

    /// Columns of B and D.
    pub(crate) fn columns(&self) -> u64 {
        self.multiply.shape.n.into()
    }

    /// Whether A and B have signs that the instruction can change.
    pub(crate) fn is_float(&self) -> bool {
        self.multiply.sum != Accumulator::S32
    }

    /// Whether A and B may be stored with k as the slower dimension.
    pub(crate) fn may_transpose(&self) -> bool {
        self.multiply.a.bits() == 16
    }

    /// Registers of A, and those of D.
    pub(crate) fn registers(&self) -> [usize; 2] {
        [A_REGISTERS, self.columns() as usize / 2 / self.multiply.sum.per_register()]
    }

    /// A, row by row, from its registers.
    pub(crate) fn rows(&self, a: &[Column]) -> Vec<u64> {
        self.multiply.rows_of_a(a)
    }

    /// The registers of D, from A row by row, B column by column, and the registers of D before, if they are added.
    pub(crate) fn product(&self, rows: &[u64], columns: &[u64], before: Option<&[Column]>) -> Vec<Column> {
        let before = before.map(|before| self.multiply.rows_of_c(before));
        let n = self.columns() as usize;
        let of = |row: usize, column: usize| before.as_ref().map_or(0, |all| all[row * n + column]);
        self.multiply.spread(&self.multiply.dense(rows, columns, of), self.registers()[1])
    }

    /// The undefined bits of D, from those of A, B and D before.
    pub(crate) fn undefined_product(
        &self,
        rows: &[u64],
        columns: &[u64],
        before: Option<&[Column]>,
    ) -> Vec<Column> {
        let before = before.map(|before| self.multiply.rows_of_c(before));
        let n = self.columns() as usize;
        let of = |row: usize, column: usize| before.as_ref().map_or(0, |all| all[row * n + column]);
        self.multiply.spread(&self.multiply.undefined_dense(rows, columns, of), self.registers()[1])
    }
}

/// The elements of A or B with the other sign.
pub(crate) fn negated(element: MatrixElement, elements: &mut [u64]) {
    let sign = 1 << (element.bits() - 1);
    elements.iter_mut().for_each(|bits| *bits ^= sign);
}

/// The forms of the PTX ISA.
fn exists(multiply: &Multiply) -> bool {
    use Accumulator as Sum;
    use MatrixElement::{B1, Bf16, E4m3, E5m2, F16, S8, Tf32, U8};
    let MultiplyShape { n, k, .. } = multiply.shape;
    let is_width = (8..=256).contains(&n) && n % 8 == 0;
    // Integers have fewer widths.
    let is_integer_width = is_width && (n <= 32 || n % 16 == 0);
    match (multiply.a, multiply.b, multiply.sum) {
        (F16, F16, Sum::F16 | Sum::F32) | (Bf16, Bf16, Sum::F32) => {
            is_width && k == 16 && !multiply.satfinite
        }
        (Tf32, Tf32, Sum::F32) => is_width && k == 8 && !multiply.satfinite,
        (E4m3 | E5m2, E4m3 | E5m2, Sum::F16 | Sum::F32) => is_width && k == 32 && !multiply.satfinite,
        (S8 | U8, S8 | U8, Sum::S32) => is_integer_width && k == 32,
        (B1, B1, Sum::S32) => is_integer_width && k == 256 && !multiply.satfinite,
        _ => false,
    }
}
