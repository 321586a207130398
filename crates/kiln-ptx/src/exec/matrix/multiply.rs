//! One form of `mma`: shapes and types, and the product itself.

use std::iter::Peekable;
use std::str::Split;

use super::dot::{self, Factor};
use super::element::{Accumulator, MatrixElement};
use super::fragment;
use crate::exec::alu::Round;
use crate::exec::requirement::Requirement;
use crate::exec::warp_register::Column;

/// Rows, columns and depth of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MultiplyShape {
    pub(crate) m: u16,
    pub(crate) n: u16,
    pub(crate) k: u16,
}

impl MultiplyShape {
    /// `m16n8k16` and the like.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Self { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }
}

/// What is counted of two rows of single bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitProduct {
    Xor,
    And,
}

/// `D = A B + C` for one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiply {
    pub(crate) shape: MultiplyShape,
    pub(crate) a: MatrixElement,
    pub(crate) b: MatrixElement,
    /// C and D have one type.
    pub(crate) sum: Accumulator,
    /// Whether integers stop at the limits of `s32` instead of wrapping.
    pub(crate) satfinite: bool,
    pub(crate) bits: BitProduct,
    /// How sums of `f64` are rounded.
    pub(crate) round: Round,
    /// Whether 8-bit floats and C are summed at once, as `wgmma` does.
    pub(crate) at_once: bool,
}

impl Multiply {
    /// The form that a dotted word names; `None` for those that do not exist or are not run.
    ///
    /// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`
    pub(crate) fn named(text: &str) -> Option<Self> {
        let mut words = text.split('.').peekable();
        words.next().filter(|word| *word == "mma")?;
        Self::read(&mut words).filter(Self::exists)
    }

    /// The words behind `mma` or `mma.sp`.
    pub(super) fn read(words: &mut Peekable<Split<'_, char>>) -> Option<Self> {
        for expected in ["sync", "aligned"] {
            words.next().filter(|word| *word == expected)?;
        }
        let shape = MultiplyShape::named(words.next()?)?;
        for expected in ["row", "col"] {
            words.next().filter(|word| *word == expected)?;
        }
        words.next_if_eq(&"kind::f8f6f4");
        let satfinite = words.next_if_eq(&"satfinite").is_some();
        let d = Accumulator::named(words.next()?)?;
        let (a, b) = (MatrixElement::named(words.next()?)?, MatrixElement::named(words.next()?)?);
        let sum = Accumulator::named(words.next()?).filter(|c| *c == d)?;
        let bits = match (words.next(), words.next(), words.next()) {
            (None, ..) if a != MatrixElement::B1 => BitProduct::Xor,
            (Some("xor"), Some("popc"), None) if a == MatrixElement::B1 => BitProduct::Xor,
            (Some("and"), Some("popc"), None) if a == MatrixElement::B1 => BitProduct::And,
            _ => return None,
        };
        Some(Self { shape, a, b, sum, satfinite, bits, round: Round::Nearest, at_once: false })
    }

    /// The forms of the PTX ISA.
    fn exists(&self) -> bool {
        use Accumulator as Sum;
        use MatrixElement::{B1, Bf16, E4m3, E5m2, F16, F64, S4, S8, Tf32, U4, U8};
        let MultiplyShape { m, n, k } = self.shape;
        let shape = (m, n, k);
        let narrow = |x: MatrixElement| matches!(x, E4m3 | E5m2);
        match (self.a, self.b, self.sum) {
            (F16, F16, Sum::F16 | Sum::F32) | (Bf16, Bf16, Sum::F32) => {
                !self.satfinite && matches!(shape, (16, 8, 8 | 16))
            }
            (Tf32, Tf32, Sum::F32) => !self.satfinite && matches!(shape, (16, 8, 4 | 8)),
            (F64, F64, Sum::F64) => !self.satfinite && matches!(shape, (8, 8, 4) | (16, 8, 4 | 8 | 16)),
            (a, b, Sum::F32 | Sum::F16) if narrow(a) && narrow(b) => {
                !self.satfinite && matches!(shape, (16, 8, 16 | 32))
            }
            (S8 | U8, S8 | U8, Sum::S32) => matches!(shape, (8, 8, 16) | (16, 8, 16 | 32)),
            (S4 | U4, S4 | U4, Sum::S32) => matches!(shape, (8, 8, 32) | (16, 8, 32 | 64)),
            (B1, B1, Sum::S32) => !self.satfinite && matches!(shape, (8, 8, 128) | (16, 8, 128 | 256)),
            _ => false,
        }
    }

    pub(crate) fn requirement(&self) -> Requirement {
        use MatrixElement::{B1, Bf16, E4m3, E5m2, F16, F64, S4, S8, Tf32, U4, U8};
        let MultiplyShape { m, n, k } = self.shape;
        match (self.a, (m, n, k)) {
            (E4m3 | E5m2, _) if k == 16 || self.sum == Accumulator::F16 => Requirement::new(8, 7, 89),
            (E4m3 | E5m2, _) => Requirement::new(8, 4, 89),
            (F64, (16, ..)) => Requirement::new(7, 8, 90),
            (B1, _) if self.bits == BitProduct::And => Requirement::new(7, 1, 80),
            (B1, (8, ..)) => Requirement::new(7, 0, 75),
            (F16, (_, _, 8)) | (S8 | U8 | S4 | U4, (8, ..)) => Requirement::new(6, 5, 75),
            (F16 | Bf16 | Tf32 | F64 | S8 | U8 | S4 | U4 | B1, _) => Requirement::new(7, 0, 80),
        }
    }

    /// Registers of A, B, and of C and D each.
    pub(crate) fn registers(&self) -> [usize; 3] {
        let MultiplyShape { m, k, .. } = self.shape;
        let (halves, depth) = (usize::from(m) / 8, usize::from(k));
        let blocks = |ty: MatrixElement| (depth / (4 * ty.per_register())).max(1);
        [halves * blocks(self.a), blocks(self.b), halves * 2 / self.sum.per_register()]
    }

    /// The registers of D from those of A, B and C.
    pub(crate) fn product(&self, a: &[Column], b: &[Column], c: &[Column]) -> Vec<Column> {
        let (rows, columns, before) = (self.rows_of_a(a), self.columns_of_b(b), self.rows_of_c(c));
        let n = usize::from(self.shape.n);
        self.spread(&self.dense(&rows, &columns, |row, column| before[row * n + column]), c.len())
    }

    /// The undefined bits of D from those of A, B and C: an element is undefined as a whole if one of its row, of its column or of C at its place is.
    pub(crate) fn undefined_product(&self, a: &[Column], b: &[Column], c: &[Column]) -> Vec<Column> {
        let (rows, columns, before) = (self.rows_of_a(a), self.columns_of_b(b), self.rows_of_c(c));
        let n = usize::from(self.shape.n);
        self.spread(&self.undefined_dense(&rows, &columns, |row, column| before[row * n + column]), c.len())
    }

    /// D, row by row, from A row by row, B column by column, and the elements of C.
    pub(super) fn dense(
        &self,
        rows: &[u64],
        columns: &[u64],
        before: impl Fn(usize, usize) -> u64,
    ) -> Vec<u64> {
        let depth = usize::from(self.shape.k);
        let is_float = matches!(self.sum, Accumulator::F16 | Accumulator::F32);
        let factors = |ty: MatrixElement, bits: &[u64]| -> Vec<Factor> {
            if is_float {
                bits.iter().map(|bits| Factor::of(ty, *bits, self.at_once)).collect()
            } else {
                Vec::new()
            }
        };
        let (a, b) = (factors(self.a, rows), factors(self.b, columns));
        let element = |row: usize, column: usize| {
            let (from, along) = (row * depth, column * depth);
            let before = before(row, column);
            if is_float {
                dot::float(self, &a[from..][..depth], &b[along..][..depth], before)
            } else {
                self.dot(&rows[from..][..depth], &columns[along..][..depth], before)
            }
        };
        self.places().map(|(row, column)| element(row, column)).collect()
    }

    /// D as the product over the second half of the depth, added to that over the first half.
    pub(super) fn dense_by_halves(
        &self,
        rows: &[u64],
        columns: &[u64],
        before: impl Fn(usize, usize) -> u64,
    ) -> Vec<u64> {
        let depth = usize::from(self.shape.k);
        let half = Self { shape: MultiplyShape { k: self.shape.k / 2, ..self.shape }, ..*self };
        let part = |lines: &[u64], from: usize| -> Vec<u64> {
            lines.chunks(depth).flat_map(|line| line[from..][..depth / 2].iter().copied()).collect()
        };
        let first = half.dense(&part(rows, 0), &part(columns, 0), before);
        let n = usize::from(self.shape.n);
        half.dense(&part(rows, depth / 2), &part(columns, depth / 2), |row, column| first[row * n + column])
    }

    /// The undefined bits of D, from those of A, B and C in the same order.
    pub(super) fn undefined_dense(
        &self,
        rows: &[u64],
        columns: &[u64],
        before: impl Fn(usize, usize) -> u64,
    ) -> Vec<u64> {
        let depth = usize::from(self.shape.k);
        let is_undefined = |lines: &[u64]| -> Vec<bool> {
            lines.chunks(depth).map(|line| line.iter().any(|bits| *bits != 0)).collect()
        };
        let (rows, columns) = (is_undefined(rows), is_undefined(columns));
        let ones = match self.sum {
            Accumulator::F16 => 0xffff,
            Accumulator::F32 | Accumulator::S32 => 0xffff_ffff,
            Accumulator::F64 => u64::MAX,
        };
        let element = |row: usize, column: usize| {
            if rows[row] || columns[column] || before(row, column) != 0 { ones } else { 0 }
        };
        self.places().map(|(row, column)| element(row, column)).collect()
    }

    /// Rows and columns of D, row by row.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (m, n) = (usize::from(self.shape.m), usize::from(self.shape.n));
        (0..m * n).map(move |at| (at / n, at % n))
    }

    /// C, row by row.
    pub(super) fn rows_of_c(&self, c: &[Column]) -> Vec<u64> {
        let (n, per) = (usize::from(self.shape.n), self.sum.per_register());
        let mut rows = vec![0; usize::from(self.shape.m) * n];
        for (register, column) in c.iter().enumerate() {
            for (lane, value) in column.iter().enumerate() {
                for part in 0..per {
                    let at = fragment::of_c(lane, register, part, self.sum);
                    rows[at.row * n + at.column] = element(*value, part, 16, per);
                }
            }
        }
        rows
    }

    /// The registers of D, from its elements row by row.
    pub(super) fn spread(&self, elements: &[u64], registers: usize) -> Vec<Column> {
        let (n, per) = (usize::from(self.shape.n), self.sum.per_register());
        let value = |lane: usize, register: usize| {
            (0..per).fold(0, |value, part| {
                let at = fragment::of_c(lane, register, part, self.sum);
                value | elements[at.row * n + at.column] << (16 * part)
            })
        };
        (0..registers).map(|register| std::array::from_fn(|lane| value(lane, register))).collect()
    }

    /// One element of D in integers or `f64`.
    pub(super) fn dot(&self, row: &[u64], column: &[u64], before: u64) -> u64 {
        match self.sum {
            Accumulator::S32 if self.a == MatrixElement::B1 => {
                let both = |(a, b): (&u64, &u64)| match self.bits {
                    BitProduct::Xor => a ^ b,
                    BitProduct::And => a & b,
                };
                let count: u64 = row.iter().zip(column).map(both).sum();
                u64::from((before as u32).wrapping_add(count as u32))
            }
            Accumulator::S32 => {
                let product = |(a, b): (&u64, &u64)| self.a.integer(*a) * self.b.integer(*b);
                let sum = row.iter().zip(column).map(product).sum::<i64>() + i64::from(before as u32 as i32);
                let kept = if self.satfinite { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                u64::from(kept as u32)
            }
            _ => dot::double(row, column, before, self.round),
        }
    }

    /// A, row by row.
    pub(super) fn rows_of_a(&self, a: &[Column]) -> Vec<u64> {
        let depth = usize::from(self.shape.k);
        let mut rows = vec![0; usize::from(self.shape.m) * depth];
        let per = self.a.per_register();
        for (register, column) in a.iter().enumerate() {
            for (lane, value) in column.iter().enumerate() {
                for part in 0..per {
                    let at = fragment::of_a(lane, register, part, self.shape, self.a);
                    rows[at.row * depth + at.column] = element(*value, part, self.a.bits(), per);
                }
            }
        }
        rows
    }

    /// B, column by column.
    pub(super) fn columns_of_b(&self, b: &[Column]) -> Vec<u64> {
        let depth = usize::from(self.shape.k);
        let mut columns = vec![0; usize::from(self.shape.n) * depth];
        let per = self.b.per_register();
        for (register, column) in b.iter().enumerate() {
            for (lane, value) in column.iter().enumerate() {
                for part in 0..per {
                    let at = fragment::of_b(lane, register, part, self.b);
                    columns[at.column * depth + at.row] = element(*value, part, self.b.bits(), per);
                }
            }
        }
        columns
    }
}

/// One of the elements in a register.
fn element(register: u64, part: usize, bits: u32, per_register: usize) -> u64 {
    if per_register == 1 { register } else { register >> (part as u32 * bits) & (u64::MAX >> (64 - bits)) }
}
