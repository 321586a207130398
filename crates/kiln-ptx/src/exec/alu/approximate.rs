//! Functions the hardware approximates.
//!
//! They are computed in double precision and rounded, which lies within every error PTX documents. What PTX promises
//! exactly, the results for zeros, infinities and NaN, is kept exactly.

use super::single::{canonical, finish, float, operand};
use super::{Alu, lanes};

/// An `f32` function of one operand.
macro_rules! function {
    (|$x:ident| $body:expr) => {
        lanes!(mode, |a, _b, _c| {
            let $x = f64::from(float(operand(a, mode)));
            finish(canonical($body as f32), mode)
        })
    };
}

/// `sin.approx`.
pub(crate) fn sine() -> Alu {
    function!(|x| x.sin())
}

/// `cos.approx`.
pub(crate) fn cosine() -> Alu {
    function!(|x| x.cos())
}

/// `lg2.approx`.
pub(crate) fn log2() -> Alu {
    function!(|x| x.log2())
}

/// `ex2.approx`.
pub(crate) fn exp2() -> Alu {
    function!(|x| x.exp2())
}

/// `tanh.approx`.
pub(crate) fn tanh() -> Alu {
    function!(|x| x.tanh())
}

/// `rcp.approx`.
pub(crate) fn reciprocal() -> Alu {
    function!(|x| 1.0 / x)
}

/// `rsqrt.approx`.
pub(crate) fn reciprocal_root() -> Alu {
    function!(|x| 1.0 / x.sqrt())
}

/// `sqrt.approx`.
pub(crate) fn root() -> Alu {
    function!(|x| x.sqrt())
}

/// `div.approx`: by a divisor beyond 2^126 it answers zero, or NaN for an infinite dividend.
pub(crate) fn divide() -> Alu {
    lanes!(mode, |a, b, _c| {
        let (x, y) = (float(operand(a, mode)), float(operand(b, mode)));
        let huge = y.is_finite() && y.abs() > f32::from_bits(0x7e80_0000);
        let quotient = if huge && !x.is_nan() {
            if x.is_infinite() { f32::NAN } else { 0.0f32.copysign(x) * 1.0f32.copysign(y) }
        } else {
            x / y
        };
        finish(canonical(quotient), mode)
    })
}

/// `div.full`.
pub(crate) fn divide_full() -> Alu {
    lanes!(mode, |a, b, _c| {
        let quotient = float(operand(a, mode)) / float(operand(b, mode));
        finish(canonical(quotient), mode)
    })
}

/// The half of a double that `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` read and write.
const COARSE: u64 = !0xffff_ffff;

/// `rcp.approx.ftz.f64`.
pub(crate) fn reciprocal_double() -> Alu {
    lanes!(|a| coarse(1.0 / flush(a & COARSE)))
}

/// `rsqrt.approx.f64`, with and without `ftz`.
pub(crate) fn reciprocal_root_double() -> Alu {
    lanes!(mode, |a, _b, _c| {
        let x = if mode.ftz { flush(a & COARSE) } else { f64::from_bits(a) };
        if mode.ftz { coarse(1.0 / x.sqrt()) } else { (1.0 / x.sqrt()).to_bits() }
    })
}

fn flush(bits: u64) -> f64 {
    f64::from_bits(super::float_format::F64.flush(bits))
}

fn coarse(value: f64) -> u64 {
    if value.is_nan() {
        return super::float_format::F64.nan;
    };
    flush(value.to_bits()).to_bits() & COARSE
}
