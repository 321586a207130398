//! `mma.sp`: a product with an A of which half the elements are zero.
//!
//! Of every few neighbours in a row of A (four; two of `tf32`, eight of 4-bit integers) half are there, and metadata says which. Four bits
//! of metadata stand for one such chunk. Zeros that are not there take no part in a sum: an infinity of B beside them does no harm.

use super::dot::{self, Factor};
use super::element::{Accumulator, MatrixElement};
use super::multiply::{Multiply, MultiplyShape};
use crate::exec::requirement::Requirement;
use crate::exec::warp_register::Column;

/// One form of `mma.sp` with its sparsity selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SparseMultiply {
    /// Its shape has the whole depth.
    multiply: Multiply,
    /// Whether indices must rise.
    ordered: bool,
    selector: usize,
}

/// Which threads of every four give the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Givers {
    /// One thread: half a word for a row and half for the row eight below.
    One,
    /// Two threads: the same, for each half of the depth.
    PairByDepth,
    /// Two threads: a word for the row, and one for the row eight below.
    PairByRow,
    /// All threads: the same, for each half of the depth.
    All,
}

/// Bits of metadata of one chunk that its type allows.
const ORDERED: [u64; 6] = [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110];
const SINGLE: [u64; 2] = [0b0100, 0b1110];

impl SparseMultiply {
    /// The form that a dotted word names, with selector 0; `None` for those that do not exist or are not run.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let mut words = text.split('.').peekable();
        words.next().filter(|word| *word == "mma")?;
        let ordered = match words.next()? {
            "sp" => false,
            "sp::ordered_metadata" => true,
            _ => return None,
        };
        let multiply = Multiply::read(&mut words)?;
        let sparse = Self { multiply, ordered, selector: 0 };
        sparse.givers().is_some().then_some(sparse)
    }

    /// The same with a selector; the largest that may be given if this one may not.
    pub(crate) fn with_selector(self, selector: u64) -> Result<Self, u32> {
        let most = match self.givers() {
            Some(Givers::One) => 3,
            Some(Givers::PairByDepth | Givers::PairByRow) => 1,
            Some(Givers::All) | None => 0,
        };
        if selector <= u64::from(most) { Ok(Self { selector: selector as usize, ..self }) } else { Err(most) }
    }

    pub(crate) fn requirement(&self) -> Requirement {
        match (self.multiply.a, self.ordered) {
            (MatrixElement::E4m3 | MatrixElement::E5m2, true) => Requirement::new(8, 5, 89),
            (MatrixElement::E4m3 | MatrixElement::E5m2, false) => Requirement::new(8, 4, 89),
            (_, true) => Requirement::new(8, 5, 80),
            (_, false) => Requirement::new(7, 1, 80),
        }
    }

    /// `None` for forms that do not exist.
    fn givers(&self) -> Option<Givers> {
        use MatrixElement::{Bf16, E4m3, E5m2, F16, S4, S8, Tf32, U4, U8};
        let Multiply { shape: MultiplyShape { m, n, k }, a, b, sum, satfinite, .. } = self.multiply;
        let has_sum = match (a, b, sum) {
            (F16, F16, Accumulator::F16 | Accumulator::F32)
            | (Bf16, Bf16, Accumulator::F32)
            | (Tf32, Tf32, Accumulator::F32)
            | (E4m3 | E5m2, E4m3 | E5m2, Accumulator::F32) => !satfinite,
            (S8 | U8, S8 | U8, Accumulator::S32) | (S4 | U4, S4 | U4, Accumulator::S32) => true,
            _ => false,
        };
        let givers = match (a, k) {
            (F16 | Bf16, 16) | (Tf32, 8) => Givers::One,
            (F16 | Bf16, 32) | (Tf32, 16) => Givers::PairByDepth,
            (S8 | U8, 32) | (S4 | U4, 64) => Givers::PairByRow,
            (S8 | U8 | E4m3 | E5m2, 64) | (S4 | U4, 128) => Givers::All,
            _ => return None,
        };
        ((m, n) == (16, 8) && has_sum).then_some(givers)
    }

    /// Elements of A of which half are there.
    fn chunk(&self) -> usize {
        match self.multiply.a.bits() {
            32 => 2,
            4 => 8,
            _ => 4,
        }
    }

    /// A with what is there alone.
    fn packed(&self) -> Multiply {
        let MultiplyShape { m, n, k } = self.multiply.shape;
        Multiply { shape: MultiplyShape { m, n, k: k / 2 }, ..self.multiply }
    }

    /// Registers of A, B, and of C and D each.
    pub(crate) fn registers(&self) -> [usize; 3] {
        let [a, _, sum] = self.packed().registers();
        let [_, b, _] = self.multiply.registers();
        [a, b, sum]
    }

    /// The lane with the metadata of a chunk of a row, and how far it is from the lowest bit.
    fn place(&self, row: usize, chunk: usize) -> (usize, usize) {
        let (first, half) = (row % 8 * 4, row / 8);
        match self.givers() {
            Some(Givers::PairByDepth) => (first + 2 * self.selector + chunk / 4, 16 * half + chunk % 4 * 4),
            Some(Givers::PairByRow) => (first + 2 * self.selector + half, chunk * 4),
            Some(Givers::All) => (first + 2 * (chunk / 8) + half, chunk % 8 * 4),
            Some(Givers::One) | None => (first + self.selector, 16 * half + chunk * 4),
        }
    }

    /// A row and chunk whose metadata names elements that cannot be: its lane, and the four bits.
    pub(crate) fn bad_metadata(&self, metadata: &Column, lanes: u32) -> Option<(usize, u64)> {
        let is_single = self.multiply.a == MatrixElement::Tf32;
        let is_allowed = |bits: u64| match (is_single, self.ordered) {
            (true, _) => SINGLE.contains(&bits),
            (_, true) => ORDERED.contains(&bits),
            (_, false) => bits & 3 != bits >> 2,
        };
        let chunks = usize::from(self.multiply.shape.k) / self.chunk();
        let places = (0..16).flat_map(|row| (0..chunks).map(move |chunk| (row, chunk)));
        places
            .map(|(row, chunk)| self.place(row, chunk))
            .filter(|(lane, _)| lanes >> lane & 1 != 0)
            .map(|(lane, shift)| (lane, metadata[lane] >> shift & 15))
            .find(|(_, bits)| !is_allowed(*bits))
    }

    /// The columns of A that the elements of a row stand in.
    fn columns(&self, metadata: &Column, row: usize) -> Vec<usize> {
        let (chunk, depth) = (self.chunk(), usize::from(self.multiply.shape.k));
        let of_chunk = |at: usize| {
            let (lane, shift) = self.place(row, at);
            let bits = metadata[lane] >> shift & 15;
            let (first, second) = ((bits & 3) as usize, (bits >> 2) as usize);
            match chunk {
                2 => vec![first / 2],
                8 => [first, second].iter().flat_map(|pair| [2 * pair, 2 * pair + 1]).collect(),
                _ => vec![first, second],
            }
            .into_iter()
            .map(move |column| at * chunk + column)
        };
        (0..depth / chunk).flat_map(of_chunk).collect()
    }

    fn split<'f>(&self, from: &'f [Column]) -> Option<([&'f [Column]; 3], &'f Column)> {
        let [a, b, c] = self.registers();
        let (metadata, fragments) = from.split_last().filter(|(_, rest)| rest.len() == a + b + c)?;
        let (a, rest) = fragments.split_at(a);
        let (b, c) = rest.split_at(b);
        Some(([a, b, c], metadata))
    }

    /// The registers of D from those of A, B, C and the metadata.
    pub(crate) fn product(&self, from: &[Column]) -> Vec<Column> {
        let Some(([a, b, c], metadata)) = self.split(from) else { return Vec::new() };
        let (packed, n) = (self.packed(), usize::from(self.multiply.shape.n));
        let (rows, columns) = (packed.rows_of_a(a), self.multiply.columns_of_b(b));
        let before = packed.rows_of_c(c);
        let (depth, whole) = (usize::from(packed.shape.k), usize::from(self.multiply.shape.k));
        let is_float = matches!(packed.sum, Accumulator::F16 | Accumulator::F32);
        let factors = |ty: MatrixElement, bits: &[u64]| -> Vec<Factor> {
            bits.iter().map(|bits| Factor::of(ty, *bits, false)).collect()
        };
        let mut elements = Vec::new();
        for row in 0..16 {
            let there = self.columns(metadata, row);
            let a = &rows[row * depth..][..depth];
            for column in 0..n {
                let b: Vec<u64> = there.iter().map(|at| columns[column * whole + at]).collect();
                let before = before[row * n + column];
                elements.push(if is_float {
                    dot::float(&packed, &factors(packed.a, a), &factors(packed.b, &b), before)
                } else {
                    packed.dot(a, &b, before)
                });
            }
        }
        packed.spread(&elements, c.len())
    }

    /// The undefined bits of D from those of A, B, C and the metadata: what the metadata picks is not looked at.
    pub(crate) fn undefined_product(&self, from: &[Column]) -> Vec<Column> {
        let Some(([a, b, c], metadata)) = self.split(from) else { return Vec::new() };
        let (packed, n) = (self.packed(), usize::from(self.multiply.shape.n));
        let (depth, whole) = (usize::from(packed.shape.k), usize::from(self.multiply.shape.k));
        let mut rows = packed.rows_of_a(a);
        for row in 0..16 {
            let chunks = whole / self.chunk();
            let is_unknown = |chunk: usize| {
                let (lane, shift) = self.place(row, chunk);
                metadata[lane] >> shift & 15 != 0
            };
            rows[row * depth] |= u64::from((0..chunks).any(is_unknown));
        }
        let columns = self.multiply.columns_of_b(b);
        // One undefined element of a column is enough; where it stands does not matter.
        let columns: Vec<u64> = columns
            .chunks(whole)
            .flat_map(|column| {
                let mut packed = vec![0; depth];
                packed[0] = column.iter().fold(0, |all, bits| all | bits);
                packed
            })
            .collect();
        let before = packed.rows_of_c(c);
        let elements = packed.undefined_dense(&rows, &columns, |row, column| before[row * n + column]);
        packed.spread(&elements, c.len())
    }
}
