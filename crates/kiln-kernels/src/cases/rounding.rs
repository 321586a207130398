//! Every rounding of the IEEE operations.
//!
//! The oracle does not compute with directed roundings but checks their definition on exact values: the result is the
//! neighbour of the nearest one on the asked side of the exact result, whose side is found with integers.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("rounding");

/// Where the exact result lies from the rounded one.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Below,
    Same,
    Above,
}

fn side(order: std::cmp::Ordering) -> Side {
    match order {
        std::cmp::Ordering::Less => Side::Below,
        std::cmp::Ordering::Equal => Side::Same,
        std::cmp::Ordering::Greater => Side::Above,
    }
}

/// A dyadic number: an integer of any size times a power of two.
#[derive(Clone, Debug)]
struct Dyadic {
    negative: bool,
    words: Vec<u32>,
    exponent: i32,
}

impl Dyadic {
    fn new(x: f64) -> Self {
        let bits = x.abs().to_bits();
        let (biased, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        let whole = fraction | u64::from(biased != 0) << 52;
        let words = vec![whole as u32, (whole >> 32) as u32];
        Self { negative: x.is_sign_negative(), words, exponent: biased.max(1) - 1075 }
    }

    fn times(&self, other: &Self) -> Self {
        let mut words = vec![0u32; self.words.len() + other.words.len()];
        for (i, x) in self.words.iter().enumerate() {
            let mut carry = 0u64;
            for (j, y) in other.words.iter().enumerate() {
                let sum = u64::from(words[i + j]) + u64::from(*x) * u64::from(*y) + carry;
                words[i + j] = sum as u32;
                carry = sum >> 32;
            }
            words[i + other.words.len()] = carry as u32;
        }
        Self { negative: self.negative != other.negative, words, exponent: self.exponent + other.exponent }
    }

    /// The integer part words when counted in units of `2^exponent`.
    fn aligned(&self, exponent: i32) -> Vec<u32> {
        let shift = (self.exponent - exponent) as usize;
        let mut words = vec![0; shift / 32];
        let mut carry = 0u64;
        for word in &self.words {
            let moved = u64::from(*word) << (shift % 32) | carry;
            words.push(moved as u32);
            carry = moved >> 32;
        }
        words.push(carry as u32);
        words
    }

    fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let (a, b) = (self.aligned(exponent), other.aligned(exponent));
        let len = a.len().max(b.len()) + 1;
        let at = |words: &[u32], i: usize| i64::from(words.get(i).copied().unwrap_or(0));
        let mut words = Vec::with_capacity(len);
        let mut carry = 0i64;
        let swap = compare(&a, &b).is_lt();
        let (large, small) = if swap { (&b, &a) } else { (&a, &b) };
        let sign = if self.negative == other.negative { 1 } else { -1 };
        for i in 0..len {
            let sum = at(large, i) + sign * at(small, i) + carry;
            words.push(sum as u32);
            carry = sum >> 32;
        }
        Self { negative: if swap { other.negative } else { self.negative }, words, exponent }
    }

    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let difference = self.plus(&Self { negative: !other.negative, ..other.clone() });
        match (difference.words.iter().all(|w| *w == 0), difference.negative) {
            (true, _) => std::cmp::Ordering::Equal,
            (_, true) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        }
    }
}

fn compare(a: &[u32], b: &[u32]) -> std::cmp::Ordering {
    let len = a.len().max(b.len());
    let at = |words: &[u32], i: usize| words.get(i).copied().unwrap_or(0);
    (0..len).rev().map(|i| at(a, i).cmp(&at(b, i))).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

/// A float type seen through its neighbours.
trait Float: Copy {
    fn wide(self) -> f64;
    fn next_up(self) -> Self;
    fn next_down(self) -> Self;
    fn largest() -> Self;
    fn negated(self) -> Self;
    fn is_infinite(self) -> bool;
}

macro_rules! float {
    ($ty:ty) => {
        impl Float for $ty {
            fn wide(self) -> f64 {
                f64::from(self)
            }
            fn next_up(self) -> Self {
                <$ty>::next_up(self)
            }
            fn next_down(self) -> Self {
                <$ty>::next_down(self)
            }
            fn largest() -> Self {
                <$ty>::MAX
            }
            fn negated(self) -> Self {
                -self
            }
            fn is_infinite(self) -> bool {
                <$ty>::is_infinite(self)
            }
        }
    };
}

float!(f32);
float!(f64);

/// Nearest, toward zero, down and up, from the nearest result and the side the exact one lies on.
fn four<T: Float>(nearest: T, side: Side, zero_down: T) -> [T; 4] {
    let x = nearest.wide();
    let (down, up) = match side {
        Side::Same => (nearest, nearest),
        Side::Below => (nearest.next_down(), nearest),
        Side::Above => (nearest, nearest.next_up()),
    };
    // An exact zero of a sum is negative when rounding down.
    let down = if side == Side::Same && x == 0.0 { zero_down } else { down };
    let negative = x.is_sign_negative();
    let zero = match side {
        Side::Same => nearest,
        _ if negative => up,
        _ => down,
    };
    [nearest, zero, down, up]
}

/// The four roundings of a finite exact result, given the nearest one.
fn rounded<T: Float>(nearest: T, exact: &Dyadic, zero_down: T) -> [T; 4] {
    if nearest.is_infinite() {
        // Overflow: the largest number stands on the side of zero.
        let most = T::largest();
        return match exact.negative {
            false => [nearest, most, most, nearest],
            true => [nearest, most.negated(), nearest, most.negated()],
        };
    }
    let [near, zero, down, up] = four(nearest, side(exact.compare(&Dyadic::new(nearest.wide()))), zero_down);
    // A result that rounds to zero keeps its sign on the way to its neighbours.
    if near.wide() == 0.0 && exact.words.iter().any(|w| *w != 0) {
        return match exact.negative {
            true => [near, near, near.next_down(), near],
            false => [near, near, near, near.next_up()],
        };
    }
    [near, zero, down, up]
}

/// Six operations in four roundings, for one type.
macro_rules! operations {
    ($name:ident, $ty:ty) => {
        fn $name(x: $ty, y: $ty, z: $ty) -> Vec<$ty> {
            let wide = |v: $ty| Dyadic::new(f64::from(v));
            let (dx, dy, dz) = (wide(x), wide(y), wide(z));
            let product = dx.times(&dy);
            let sum = rounded(
                x + y,
                &dx.plus(&dy),
                if x + y == 0.0 && x.is_sign_negative() != y.is_sign_negative() { -0.0 } else { x + y },
            );
            let mul = rounded(x * y, &product, x * y);
            let near = x.mul_add(y, z);
            let cancels = near == 0.0 && (x * y).is_sign_negative() != z.is_sign_negative();
            let fma = rounded(near, &product.plus(&dz), if cancels { -0.0 } else { near });
            [sum.to_vec(), mul.to_vec(), fma.to_vec(), quotient(x, y), root(x), quotient(1.0, x)].concat()
        }
    };
}

/// A quotient: its side is that of the remainder, found by multiplying back.
macro_rules! quotients {
    ($quotient:ident, $root:ident, $ty:ty) => {
        fn $quotient(x: $ty, y: $ty) -> Vec<$ty> {
            let nearest = x / y;
            if x == 0.0 || y == 0.0 || nearest.is_nan() {
                return vec![nearest; 4];
            }
            let (dx, dy) = (Dyadic::new(f64::from(x)), Dyadic::new(f64::from(y)));
            let negative = dx.negative != dy.negative;
            let absolute = |d: &Dyadic| Dyadic { negative: false, ..d.clone() };
            let near = if nearest.is_infinite() { <$ty>::MAX.copysign(nearest) } else { nearest };
            let back = absolute(&Dyadic::new(f64::from(near)).times(&dy));
            let order = absolute(&dx).compare(&back);
            if nearest.is_infinite() {
                let most = <$ty>::MAX.copysign(nearest);
                return if negative {
                    vec![nearest, most, nearest, most]
                } else {
                    vec![nearest, most, most, nearest]
                };
            }
            let order = if negative { order.reverse() } else { order };
            if nearest == 0.0 {
                return match negative {
                    true => vec![nearest, nearest, nearest.next_down(), nearest],
                    false => vec![nearest, nearest, nearest, nearest.next_up()],
                };
            }
            four(nearest, side(order), nearest).to_vec()
        }

        fn $root(x: $ty) -> Vec<$ty> {
            let nearest = x.sqrt();
            if nearest.is_nan() || nearest == 0.0 {
                return vec![nearest; 4];
            }
            let near = Dyadic::new(f64::from(nearest));
            let order = Dyadic::new(f64::from(x)).compare(&near.times(&near));
            four(nearest, side(order), nearest).to_vec()
        }
    };
}

mod single {
    use super::*;
    quotients!(quotient, root, f32);
    operations!(all, f32);
    pub(super) fn run(x: f32, y: f32, z: f32) -> Vec<f32> {
        all(x, y, z)
    }
}

mod double {
    use super::*;
    quotients!(quotient, root, f64);
    operations!(all, f64);
    pub(super) fn run(x: f64, y: f64, z: f64) -> Vec<f64> {
        all(x, y, z)
    }
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

/// Bits of NaN that arithmetic answers.
const NAN: u32 = 0x7fff_ffff;

fn bits(x: f32) -> u32 {
    if x.is_nan() { NAN } else { x.to_bits() }
}

/// The extreme of two numbers: NaN loses, -0 is below +0.
fn extreme(x: f32, y: f32, smaller: bool) -> f32 {
    match (x.is_nan(), y.is_nan()) {
        (true, _) => y,
        (_, true) => x,
        _ if x == y => {
            if x.is_sign_negative() == smaller {
                x
            } else {
                y
            }
        }
        _ => {
            if (x < y) == smaller {
                x
            } else {
                y
            }
        }
    }
}

/// Numbers of all kinds, with NaN, infinities and zeros among them.
fn specials(r: &mut crate::Random, count: usize) -> Vec<f32> {
    let odd = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, -1.0, f32::MAX, f32::MIN_POSITIVE];
    let list = r.wild_f32s(count);
    list.into_iter().map(|x| if r.within(0, 1) == 0 { odd[r.within(0, 8) as usize] } else { x }).collect()
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "round_f32",
        CaseShape::linear(8, 64),
        |r| vec![
            exact(r.wild_f32s(500)),
            exact(r.wild_f32s(500)),
            exact(r.wild_f32s(500)),
            exact(vec![0f32; 12_000]).judged(crate::Compare::Ulps(0)),
            value(500u32)
        ],
        |a| {
            let (x, y, z) = (a.f32s(0), a.f32s(1), a.f32s(2));
            a.set(3, (0..500).flat_map(|i| single::run(x[i], y[i], z[i])).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "round_f64",
        CaseShape::linear(5, 64),
        |r| vec![
            exact(r.wild_f64s(300)),
            exact(r.wild_f64s(300)),
            exact(r.wild_f64s(300)),
            exact(vec![0f64; 7200]).judged(crate::Compare::Ulps(0)),
            value(300u32)
        ],
        |a| {
            let (x, y, z) = (a.f64s(0), a.f64s(1), a.f64s(2));
            a.set(3, (0..300).flat_map(|i| double::run(x[i], y[i], z[i])).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "flush_f32",
        CaseShape::linear(8, 64),
        |r| vec![exact(r.wild_f32s(500)), exact(r.wild_f32s(500)), exact(vec![0f32; 2000]), value(500u32)],
        |a| {
            let four = |(x, y): (&f32, &f32)| {
                let (x, y) = (flush(*x), flush(*y));
                let fused = flush(x.mul_add(y, x));
                let clamped = if fused > 0.0 { fused.min(1.0) } else { 0.0 };
                [flush(x + y), flush(x * y), clamped, extreme(x, y, false)]
            };
            a.set(2, a.f32s(0).iter().zip(&a.f32s(1)).flat_map(four).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "compare_f32",
        CaseShape::linear(8, 64),
        |r| vec![exact(specials(r, 500)), exact(specials(r, 500)), exact(vec![0u32; 500]), value(500u32)],
        |a| {
            let word = |(x, y): (&f32, &f32)| {
                let (x, y) = (*x, *y);
                let less = x < y;
                let not_least = !matches!(
                    x.partial_cmp(&y),
                    Some(std::cmp::Ordering::Greater | std::cmp::Ordering::Equal)
                );
                let flags = [less, x <= y, x == y, x != y, !less, not_least, x.is_nan(), x.is_infinite()];
                let more = [x.is_sign_negative(), extreme(x, y, true) == x, extreme(x, y, false) == y];
                flags
                    .iter()
                    .chain(&more)
                    .zip(0..)
                    .fold(0u32, |word, (flag, at)| word | u32::from(*flag) << at)
            };
            a.set(2, a.f32s(0).iter().zip(&a.f32s(1)).map(word).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "special_values",
        CaseShape::linear(8, 64),
        |r| vec![exact(specials(r, 500)), exact(specials(r, 500)), exact(vec![0u32; 4000]), value(500u32)],
        |a| {
            let eight = |(x, y): (&f32, &f32)| {
                let (x, y) = (*x, *y);
                let small = bits(extreme(x, y, true));
                [
                    bits(x + y),
                    bits(x * y),
                    bits(x / y),
                    small,
                    bits(extreme(x, y, false)),
                    bits(x.sqrt()),
                    x.copysign(y).to_bits(),
                    // A double carries the payload of a NaN, and makes it quiet.
                    if x.is_nan() { x.to_bits() | 0x40_0000 } else { x.to_bits() },
                ]
            };
            a.set(2, a.f32s(0).iter().zip(&a.f32s(1)).flat_map(eight).collect::<Vec<u32>>());
        }
    ),
];
