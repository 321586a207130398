//! Arithmetic that is exact up to one final rounding, for the roundings a host does not offer.
//!
//! Operands are taken apart into integers; sums keep one sticky bit for what is shifted out, quotients and roots one
//! for the remainder. Slower than the host by an order of magnitude, so only what the host cannot do comes here.

use super::Round;
use super::float_format::{Exact, Format, Value};

/// Where the top bit of a significand is put before two are added: below the carry, above every bit that matters.
const TOP: i32 = 125;

/// `a + b`.
pub(crate) fn add(a: Value, b: Value, format: Format, round: Round) -> u64 {
    use Value::*;
    match (a, b) {
        (Nan, _) | (_, Nan) => format.nan,
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => format.nan,
        (Infinite { negative }, _) | (_, Infinite { negative }) => format.infinity(negative),
        (Zero { negative: x }, Zero { negative: y }) => {
            format.zero(if x == y { x } else { round == Round::Down })
        }
        (Zero { .. }, Finite(x)) | (Finite(x), Zero { .. }) => format.round(x, round),
        (Finite(x), Finite(y)) => match sum(x, y) {
            Some(exact) => format.round(exact, round),
            None => format.zero(round == Round::Down),
        },
    }
}

/// `a * b`, as a value that is still exact.
pub(crate) fn product(a: Value, b: Value) -> Value {
    use Value::*;
    let negative = sign(a) != sign(b);
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Zero { .. }) | (Zero { .. }, Infinite { .. }) => Nan,
        (Infinite { .. }, _) | (_, Infinite { .. }) => Infinite { negative },
        (Zero { .. }, _) | (_, Zero { .. }) => Zero { negative },
        (Finite(x), Finite(y)) => Finite(Exact {
            negative,
            exponent: x.exponent + y.exponent,
            significand: x.significand * y.significand,
        }),
    }
}

/// `a * b`.
pub(crate) fn multiply(a: Value, b: Value, format: Format, round: Round) -> u64 {
    format.pack(product(a, b), round)
}

/// `a * b + c`, rounded once.
pub(crate) fn fused(a: Value, b: Value, c: Value, format: Format, round: Round) -> u64 {
    add(product(a, b), c, format, round)
}

/// `a / b`.
pub(crate) fn divide(a: Value, b: Value, format: Format, round: Round) -> u64 {
    use Value::*;
    let negative = sign(a) != sign(b);
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) | (Zero { .. }, Zero { .. }) => format.nan,
        (Infinite { .. }, _) | (_, Zero { .. }) => format.infinity(negative),
        (_, Infinite { .. }) | (Zero { .. }, _) => format.zero(negative),
        (Finite(x), Finite(y)) => {
            let (x, y) = (normalise(x), narrow(y));
            let (quotient, rest) = (x.significand / y.significand, x.significand % y.significand);
            let significand = quotient << 1 | u128::from(rest != 0);
            format.round(Exact { negative, exponent: x.exponent - y.exponent - 1, significand }, round)
        }
    }
}

/// The square root of `a`.
pub(crate) fn root(a: Value, format: Format, round: Round) -> u64 {
    match a {
        Value::Nan | Value::Infinite { negative: true } => format.nan,
        Value::Infinite { negative: false } => format.infinity(false),
        Value::Zero { negative } => format.zero(negative),
        Value::Finite(x) if x.negative => format.nan,
        Value::Finite(x) => {
            let mut x = normalise(x);
            if x.exponent % 2 != 0 {
                x.significand >>= 1;
                x.exponent += 1;
            }
            let root = x.significand.isqrt();
            let significand = root << 1 | u128::from(root * root != x.significand);
            format.round(Exact { negative: false, exponent: x.exponent / 2 - 1, significand }, round)
        }
    }
}

/// An integer as a value.
pub(crate) fn integer(magnitude: u64, negative: bool) -> Value {
    match magnitude {
        0 => Value::Zero { negative: false },
        _ => Value::Finite(Exact { negative, exponent: 0, significand: u128::from(magnitude) }),
    }
}

fn sign(value: Value) -> bool {
    match value {
        Value::Nan => false,
        Value::Infinite { negative } | Value::Zero { negative } => negative,
        Value::Finite(exact) => exact.negative,
    }
}

/// The same value with its top bit at [`TOP`].
fn normalise(x: Exact) -> Exact {
    let shift = TOP - x.significand.ilog2() as i32;
    Exact { significand: x.significand << shift, exponent: x.exponent - shift, ..x }
}

/// The same value with no zero bits at the end.
fn narrow(x: Exact) -> Exact {
    let shift = x.significand.trailing_zeros();
    Exact { significand: x.significand >> shift, exponent: x.exponent + shift as i32, ..x }
}

/// `x + y`, with a sticky lowest bit; `None` for zero.
fn sum(x: Exact, y: Exact) -> Option<Exact> {
    let (x, y) = (normalise(x), normalise(y));
    let (large, small) =
        if (x.exponent, x.significand) >= (y.exponent, y.significand) { (x, y) } else { (y, x) };
    let distance = (large.exponent - small.exponent) as u32;
    let moved = match distance {
        0 => small.significand,
        1..=127 => {
            let lost = small.significand & ((1 << distance) - 1) != 0;
            small.significand >> distance | u128::from(lost)
        }
        _ => 1,
    };
    let significand =
        if large.negative == small.negative { large.significand + moved } else { large.significand - moved };
    (significand != 0).then_some(Exact { significand, ..large })
}

#[cfg(test)]
mod tests {
    use super::super::float_format::{F32, F64};
    use super::*;

    fn numbers() -> impl Iterator<Item = (f64, f64, f64)> {
        let mut state = 42u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ (state >> 29);
            // Half of the numbers lie close together, so that sums cancel.
            if bits & 1 == 0 { f64::from_bits(bits) } else { 1.0 + (bits >> 40) as f64 * 1e-9 }
        };
        std::iter::repeat_with(move || (next(), next(), -next())).take(100_000)
    }

    fn same(ours: u64, host: f64) -> bool {
        if host.is_nan() { f64::from_bits(ours).is_nan() } else { ours == host.to_bits() }
    }

    #[test]
    fn nearest_is_what_the_host_computes() {
        for (a, b, c) in numbers() {
            let (x, y, z) = (F64.unpack(a.to_bits()), F64.unpack(b.to_bits()), F64.unpack(c.to_bits()));
            assert!(same(add(x, z, F64, Round::Nearest), a + c), "{a:e} + {c:e}");
            assert!(same(multiply(x, y, F64, Round::Nearest), a * b), "{a:e} * {b:e}");
            assert!(same(divide(x, y, F64, Round::Nearest), a / b), "{a:e} / {b:e}");
            assert!(same(root(x, F64, Round::Nearest), a.sqrt()), "sqrt {a:e}");
            assert!(same(fused(x, y, z, F64, Round::Nearest), a.mul_add(b, c)), "{a:e} * {b:e} + {c:e}");
        }
    }

    #[test]
    fn directed_results_are_neighbours_around_the_exact_one() {
        for (a, b, c) in numbers() {
            let (a, b, c) = (a as f32, b as f32, c as f32);
            let [x, y, z] = [a, b, c].map(|f| F32.unpack(u64::from(f.to_bits())));
            let down = f32::from_bits(fused(x, y, z, F32, Round::Down) as u32);
            let up = f32::from_bits(fused(x, y, z, F32, Round::Up) as u32);
            let near = a.mul_add(b, c);
            if near.is_nan() {
                assert!(down.is_nan() && up.is_nan());
                continue;
            }
            assert!(down <= near && near <= up, "{a:e} * {b:e} + {c:e}");
            assert!(down == up || up == down.next_up() || (down == -0.0 && up == 0.0));
        }
    }
}
