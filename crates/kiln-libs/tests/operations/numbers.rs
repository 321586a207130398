//! Numbers for tests: made up, rounded to a type, and compared.

use half::{bf16, f16};
use kiln_libs::Tolerance;
use kiln_libs::blas::{F8E4M3, MatrixElement};

/// An element that tests can make and read.
pub(crate) trait TestNumber: MatrixElement {
    fn from_number(value: f64) -> Self;
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty: $from:expr, $to:expr;)*) => {$(
        impl TestNumber for $type {
            fn from_number(value: f64) -> Self {
                ($from)(value)
            }

            fn number(self) -> f64 {
                ($to)(self)
            }
        }
    )*};
}

numbers! {
    f64: |value: f64| value, |value: f64| value;
    f32: |value: f64| value as f32, f64::from;
    f16: f16::from_f64, f16::to_f64;
    bf16: bf16::from_f64, bf16::to_f64;
    i32: |value: f64| value.round() as i32, f64::from;
    i8: |value: f64| (value * 16.0).round() as i8, f64::from;
    F8E4M3: nearest_f8, f8_value;
}

fn f8_value(value: F8E4M3) -> f64 {
    let (exponent, fraction) = (i32::from(value.0 >> 3 & 15), f64::from(value.0 & 7));
    let sign = if value.0 > 127 { -1.0 } else { 1.0 };
    match exponent {
        0 => sign * fraction * 2.0_f64.powi(-9),
        _ => sign * (1.0 + fraction / 8.0) * 2.0_f64.powi(exponent - 7),
    }
}

fn nearest_f8(value: f64) -> F8E4M3 {
    let distance = |bits: &u8| (f8_value(F8E4M3(*bits)) - value).abs();
    let all = (0..=255_u8).filter(|bits| bits & 127 != 127);
    F8E4M3(all.min_by(|one, other| distance(one).total_cmp(&distance(other))).unwrap())
}

/// Numbers between -2 and 2 in steps of 1/256, the same for the same seed.
pub(crate) fn made_up<T: TestNumber>(seed: u64, len: usize) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::from_number(f64::from((state >> 54) as u32) / 256.0 - 2.0)
    };
    (0..len).map(|_| next()).collect()
}

/// Compares an element with the exact value, within the tolerance for its magnitude.
#[track_caller]
pub(crate) fn close(what: &str, tolerance: &Tolerance, found: f64, exact: f64, magnitude: f64) {
    let bound = tolerance.bound(magnitude, exact);
    assert!((found - exact).abs() <= bound, "{what}: {found} is not {exact} within {bound:e}");
}
