//! The forms of `wmma`, and its product.

use super::element::{Accumulator, MatrixElement};
use super::multiply::{BitProduct, Multiply, MultiplyShape};
use super::warp_tile::{TileElement, WarpTile};
use crate::exec::alu::float_format::F16;
use crate::exec::alu::half::{narrow, widen};
use crate::exec::alu::{Mode, Round};
use crate::exec::requirement::Requirement;
use crate::exec::warp_register::Column;

/// One form of `wmma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpMatrix {
    Load(TileForm),
    Store(TileForm),
    Multiply(WarpMultiply),
}

/// A matrix and how its elements follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileForm {
    pub(crate) tile: WarpTile,
    pub(crate) row_major: bool,
}

/// `D = A B + C` of `wmma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpMultiply {
    /// Shape and types; `sum` is the type of D.
    multiply: Multiply,
    c: Accumulator,
    /// How the fragments of A and B were loaded.
    a_row_major: bool,
    b_row_major: bool,
}

type Words<'t> = std::iter::Peekable<std::str::Split<'t, char>>;

impl WarpMatrix {
    /// The form that a dotted word names; `None` for those that do not exist.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let mut words = text.split('.').peekable();
        words.next().filter(|word| *word == "wmma")?;
        match words.next()? {
            "load" => TileForm::named(&mut words, false).map(Self::Load),
            "store" => TileForm::named(&mut words, true).map(Self::Store),
            "mma" => WarpMultiply::named(&mut words).map(Self::Multiply),
            _ => None,
        }
    }

    pub(crate) fn requirement(&self) -> Requirement {
        let (shape, element, is_and) = match self {
            Self::Load(form) | Self::Store(form) => (form.tile.shape, form.tile.element, false),
            Self::Multiply(WarpMultiply { multiply, .. }) => {
                let is_and = multiply.a == MatrixElement::B1 && multiply.bits == BitProduct::And;
                (multiply.shape, TileElement::A(multiply.a), is_and)
            }
        };
        let MultiplyShape { m, n, k } = shape;
        match (element, (m, n, k)) {
            _ if is_and => Requirement::new(7, 1, 80),
            (_, (8, 8, 4) | (16, 16, 8)) => Requirement::new(7, 0, 80),
            (_, (8, 8, 32 | 128)) => Requirement::new(6, 3, 75),
            (TileElement::A(MatrixElement::Bf16) | TileElement::B(MatrixElement::Bf16), _) => {
                Requirement::new(7, 0, 80)
            }
            (
                TileElement::A(MatrixElement::S8 | MatrixElement::U8)
                | TileElement::B(MatrixElement::S8 | MatrixElement::U8)
                | TileElement::Sum(Accumulator::S32),
                _,
            ) => Requirement::new(6, 3, 72),
            (_, (16, 16, 16)) => Requirement::new(6, 0, 70),
            _ => Requirement::new(6, 1, 70),
        }
    }
}

impl TileForm {
    /// `.a.sync.aligned.row.m16n16k16.global.f16`, behind `wmma.load`.
    fn named(words: &mut Words<'_>, stores: bool) -> Option<Self> {
        let part = words.next().filter(|part| (*part == "d") == stores)?;
        take_sync(words)?;
        let row_major = take_layout(words)?;
        let shape = MultiplyShape::named(words.next()?)?;
        words.next_if(|word| matches!(*word, "global" | "shared" | "shared::cta"));
        let ty = words.next()?;
        let element = match part {
            "a" => TileElement::A(MatrixElement::named(ty)?),
            "b" => TileElement::B(MatrixElement::named(ty)?),
            "c" | "d" => TileElement::Sum(Accumulator::named(ty)?),
            _ => return None,
        };
        let form = Self { tile: WarpTile { shape, element }, row_major };
        (words.next().is_none() && form.exists()).then_some(form)
    }

    fn exists(&self) -> bool {
        let WarpTile { shape, element } = self.tile;
        match element {
            TileElement::A(element) => fits(shape, element) && has_layout(element, self.row_major, true),
            TileElement::B(element) => fits(shape, element) && has_layout(element, self.row_major, false),
            TileElement::Sum(sum) => FACTORS.iter().any(|(a, sums)| fits(shape, *a) && sums.contains(&sum)),
        }
    }
}

impl WarpMultiply {
    /// `.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32`, behind `wmma.mma`.
    fn named(words: &mut Words<'_>) -> Option<Self> {
        let bits = match words.next_if(|word| matches!(*word, "xor" | "and")) {
            Some(word) => {
                words.next().filter(|word| *word == "popc")?;
                Some(if word == "and" { BitProduct::And } else { BitProduct::Xor })
            }
            None => None,
        };
        take_sync(words)?;
        let (a_row_major, b_row_major) = (take_layout(words)?, take_layout(words)?);
        let shape = MultiplyShape::named(words.next()?)?;
        let first = words.next_if(|word| rounding(word).is_some());
        let rest: Vec<&str> = words.collect();
        let (types, satfinite, last) = match rest.split_last() {
            Some((&"satfinite", types)) => (types, true, None),
            // Compilers write the rounding behind the types.
            Some((last, types)) if rounding(last).is_some() => (types, false, Some(*last)),
            _ => (&rest[..], false, None),
        };
        if first.is_some() && last.is_some() {
            return None;
        }
        let round = first.or(last).and_then(rounding);
        let (d, a, b, c) = match *types {
            [d, c] => (d, "f16", "f16", c),
            [_, "f16", ..] => return None,
            [d, a, b, c] => (d, a, b, c),
            _ => return None,
        };
        let (a, b) = (MatrixElement::named(a)?, MatrixElement::named(b)?);
        let (sum, c) = (Accumulator::named(d)?, Accumulator::named(c)?);
        let multiply = Multiply {
            shape,
            a,
            b,
            sum,
            satfinite,
            bits: bits.unwrap_or(BitProduct::Xor),
            round: round.unwrap_or_default(),
            at_once: false,
        };
        let product = Self { multiply, c, a_row_major, b_row_major };
        let are_named =
            (bits.is_some() == (a == MatrixElement::B1)) && (round.is_none() || a == MatrixElement::F64);
        (are_named && product.exists()).then_some(product)
    }

    fn exists(&self) -> bool {
        let Multiply { shape, a, b, sum, satfinite, .. } = self.multiply;
        let is_kind = |x: MatrixElement| matches!(x, MatrixElement::S8 | MatrixElement::U8);
        let is_small = |x: MatrixElement| matches!(x, MatrixElement::S4 | MatrixElement::U4);
        let are_alike = a == b || is_kind(a) && is_kind(b) || is_small(a) && is_small(b);
        let sums = FACTORS.iter().find(|(element, _)| *element == a).map_or(&[][..], |(_, sums)| sums);
        are_alike
            && fits(shape, a)
            && sums.contains(&sum)
            && sums.contains(&self.c)
            && (!satfinite || is_kind(a) || is_small(a))
            && has_layout(a, self.a_row_major, true)
            && has_layout(b, self.b_row_major, false)
    }

    /// The fragments of A, B, C and D.
    pub(crate) fn tiles(&self) -> [WarpTile; 4] {
        let Multiply { shape, a, b, sum, .. } = self.multiply;
        let elements =
            [TileElement::A(a), TileElement::B(b), TileElement::Sum(self.c), TileElement::Sum(sum)];
        elements.map(|element| WarpTile { shape, element })
    }

    /// How the fragments of A and B must have been loaded.
    pub(crate) fn factors(&self) -> [TileForm; 2] {
        let [a, b, ..] = self.tiles();
        [TileForm { tile: a, row_major: self.a_row_major }, TileForm { tile: b, row_major: self.b_row_major }]
    }

    fn split<'f>(&self, from: &'f [Column]) -> [&'f [Column]; 3] {
        let [a, b, ..] = self.tiles();
        let (a, rest) = from.split_at(a.registers().min(from.len()));
        let (b, c) = rest.split_at(b.registers().min(rest.len()));
        [a, b, c]
    }

    /// The registers of D from those of A, B and C.
    ///
    /// C is of the type of D, or becomes it: exactly where D is wider. A narrower D is rounded from the sum in `f32`. A product of `tf32` is two
    /// products of half the depth, one after the other.
    pub(crate) fn product(&self, from: &[Column]) -> Vec<Column> {
        let [a_tile, b_tile, c_tile, d_tile] = self.tiles();
        let [a, b, c] = self.split(from);
        let (rows, columns) = (a_tile.gather(a, true), b_tile.gather(b, false));
        let before = c_tile.gather(c, true);
        let n = usize::from(self.multiply.shape.n);
        let is_widened = (self.c, self.multiply.sum) == (Accumulator::F16, Accumulator::F32);
        let is_narrowed = (self.c, self.multiply.sum) == (Accumulator::F32, Accumulator::F16);
        let sum = if is_narrowed { Accumulator::F32 } else { self.multiply.sum };
        let multiply = Multiply { sum, ..self.multiply };
        let before = |row: usize, column: usize| match before[row * n + column] {
            half if is_widened => u64::from((widen(F16, half) as f32).to_bits()),
            bits => bits,
        };
        let mut elements = if self.multiply.a == MatrixElement::Tf32 {
            multiply.dense_by_halves(&rows, &columns, before)
        } else {
            multiply.dense(&rows, &columns, before)
        };
        if is_narrowed {
            elements.iter_mut().for_each(|bits| {
                *bits = narrow(F16, f64::from(f32::from_bits(*bits as u32)), Mode::default());
            });
        }
        d_tile.spread(&elements)
    }

    /// The undefined bits of D from those of A, B and C.
    pub(crate) fn undefined_product(&self, from: &[Column]) -> Vec<Column> {
        let [a_tile, b_tile, c_tile, d_tile] = self.tiles();
        let [a, b, c] = self.split(from);
        let before = c_tile.gather(c, true);
        let n = usize::from(self.multiply.shape.n);
        let (rows, columns) = (a_tile.gather(a, true), b_tile.gather(b, false));
        let is_before = |row: usize, column: usize| before[row * n + column];
        d_tile.spread(&self.multiply.undefined_dense(&rows, &columns, is_before))
    }
}

/// Types of A, each with those of C and D.
const FACTORS: [(MatrixElement, &[Accumulator]); 9] = [
    (MatrixElement::F16, &[Accumulator::F16, Accumulator::F32]),
    (MatrixElement::Bf16, &[Accumulator::F32]),
    (MatrixElement::Tf32, &[Accumulator::F32]),
    (MatrixElement::F64, &[Accumulator::F64]),
    (MatrixElement::S8, &[Accumulator::S32]),
    (MatrixElement::U8, &[Accumulator::S32]),
    (MatrixElement::S4, &[Accumulator::S32]),
    (MatrixElement::U4, &[Accumulator::S32]),
    (MatrixElement::B1, &[Accumulator::S32]),
];

/// Whether there are products of this shape with such elements.
fn fits(shape: MultiplyShape, element: MatrixElement) -> bool {
    use MatrixElement::{B1, Bf16, F16, F64, S4, S8, Tf32, U4, U8};
    let MultiplyShape { m, n, k } = shape;
    match element {
        F16 | Bf16 | S8 | U8 => matches!((m, n, k), (16, 16, 16) | (32, 8, 16) | (8, 32, 16)),
        Tf32 => (m, n, k) == (16, 16, 8),
        F64 => (m, n, k) == (8, 8, 4),
        S4 | U4 => (m, n, k) == (8, 8, 32),
        B1 => (m, n, k) == (8, 8, 128),
        _ => false,
    }
}

/// Elements smaller than a byte lie next to each other along k.
fn has_layout(element: MatrixElement, row_major: bool, is_a: bool) -> bool {
    element.bits() >= 8 || row_major == is_a
}

fn rounding(word: &str) -> Option<Round> {
    match word {
        "rn" => Some(Round::Nearest),
        "rz" => Some(Round::Zero),
        "rm" => Some(Round::Down),
        "rp" => Some(Round::Up),
        _ => None,
    }
}

fn take_sync(words: &mut Words<'_>) -> Option<()> {
    words.next().filter(|word| *word == "sync")?;
    // Before PTX 6.3 it was not written.
    words.next_if_eq(&"aligned");
    Some(())
}

fn take_layout(words: &mut Words<'_>) -> Option<bool> {
    match words.next()? {
        "row" => Some(true),
        "col" => Some(false),
        _ => None,
    }
}
