//! Comparisons.

use super::float_format::{BF16, F16, F32, F64, Format};
use super::half::widen;
use super::{Mode, Test, test};
use crate::{Compare, ScalarType};

/// The comparison of two values of a type; `None` when PTX has none such.
pub(crate) fn comparison(compare: Compare, ty: ScalarType) -> Option<Test> {
    use ScalarType::*;
    match ty {
        B16 | U16 => integer16(compare, false),
        S16 => integer16(compare, true),
        B32 | U32 => unsigned32(compare),
        S32 => signed32(compare),
        B64 | U64 => integer64(compare, false),
        S64 => integer64(compare, true),
        F32 => Some(single(compare)),
        F64 => Some(double(compare)),
        F16 | F16x2 => Some(half::<false>(compare)),
        Bf16 | Bf16x2 => Some(half::<true>(compare)),
        _ => None,
    }
}

/// A comparison of two values of one type. Those ending in `u` also hold when the two have no order.
macro_rules! by_order {
    ($compare:expr, |$a:ident, $b:ident, $mode:ident| ($x:expr, $y:expr)) => {
        match $compare {
            Compare::Eq => test!($mode, |$a, $b| $x == $y),
            Compare::Ne => test!($mode, |$a, $b| ($x < $y) | ($x > $y)),
            Compare::Lt | Compare::Lo => test!($mode, |$a, $b| $x < $y),
            Compare::Le | Compare::Ls => test!($mode, |$a, $b| $x <= $y),
            Compare::Gt | Compare::Hi => test!($mode, |$a, $b| $x > $y),
            Compare::Ge | Compare::Hs => test!($mode, |$a, $b| $x >= $y),
            Compare::Equ => test!($mode, |$a, $b| !has_order($x, $y) | ($x == $y)),
            Compare::Neu => test!($mode, |$a, $b| $x != $y),
            Compare::Ltu => test!($mode, |$a, $b| !has_order($x, $y) | ($x < $y)),
            Compare::Leu => test!($mode, |$a, $b| !has_order($x, $y) | ($x <= $y)),
            Compare::Gtu => test!($mode, |$a, $b| !has_order($x, $y) | ($x > $y)),
            Compare::Geu => test!($mode, |$a, $b| !has_order($x, $y) | ($x >= $y)),
            Compare::Num => test!($mode, |$a, $b| has_order($x, $y)),
            Compare::Nan => test!($mode, |$a, $b| !has_order($x, $y)),
        }
    };
}

/// Whether neither is NaN, without a branch.
#[inline(always)]
fn has_order<T: PartialOrd>(a: T, b: T) -> bool {
    (a < b) | (a >= b)
}

fn is_unsigned_word(compare: Compare) -> bool {
    matches!(compare, Compare::Lo | Compare::Ls | Compare::Hi | Compare::Hs)
}

fn is_for_integers(compare: Compare) -> bool {
    use Compare::*;
    matches!(compare, Eq | Ne | Lt | Le | Gt | Ge | Lo | Ls | Hi | Hs)
}

fn integer16(compare: Compare, signed: bool) -> Option<Test> {
    let signed = signed && !is_unsigned_word(compare);
    is_for_integers(compare).then(|| match signed {
        true => by_order!(compare, |a, b, _mode| (a as i16, b as i16)),
        false => by_order!(compare, |a, b, _mode| (a as u16, b as u16)),
    })
}

/// The low 32 bits as a number that compares as they do without a sign. It is as wide as a column and signed: such vectors compare fastest.
#[inline(always)]
fn unsigned(bits: u64) -> i64 {
    (bits & 0xffff_ffff) as i64
}

/// The same with a sign.
#[inline(always)]
fn signed(bits: u64) -> i64 {
    (bits << 32) as i64
}

fn unsigned32(compare: Compare) -> Option<Test> {
    is_for_integers(compare).then(|| by_order!(compare, |a, b, _mode| (unsigned(a), unsigned(b))))
}

fn signed32(compare: Compare) -> Option<Test> {
    if is_unsigned_word(compare) {
        return unsigned32(compare);
    }
    is_for_integers(compare).then(|| by_order!(compare, |a, b, _mode| (signed(a), signed(b))))
}

fn integer64(compare: Compare, signed: bool) -> Option<Test> {
    let signed = signed && !is_unsigned_word(compare);
    is_for_integers(compare).then(|| match signed {
        true => by_order!(compare, |a, b, _mode| (a as i64, b as i64)),
        false => by_order!(compare, |a, b, _mode| (a, b)),
    })
}

fn single(compare: Compare) -> Test {
    by_order!(compare, |a, b, mode| (read_single(a, mode), read_single(b, mode)))
}

fn double(compare: Compare) -> Test {
    by_order!(compare, |a, b, _mode| (f64::from_bits(a), f64::from_bits(b)))
}

fn half<const BRAIN: bool>(compare: Compare) -> Test {
    match BRAIN {
        true => by_order!(compare, |a, b, mode| (read_half(BF16, a, mode), read_half(BF16, b, mode))),
        false => by_order!(compare, |a, b, mode| (read_half(F16, a, mode), read_half(F16, b, mode))),
    }
}

#[inline(always)]
fn read_single(bits: u64, mode: Mode) -> f32 {
    let bits = if mode.ftz { F32.flush(bits) } else { bits };
    f32::from_bits(bits as u32)
}

#[inline(always)]
fn read_half(format: Format, bits: u64, mode: Mode) -> f64 {
    let bits = bits & 0xffff;
    widen(format, if mode.ftz { format.flush(bits) } else { bits })
}

/// The question of `testp` about a value of a type.
pub(crate) fn property(question: crate::Test, ty: ScalarType) -> Option<Test> {
    Some(match ty {
        ScalarType::F32 => property_of::<true>(question),
        ScalarType::F64 => property_of::<false>(question),
        _ => return None,
    })
}

fn property_of<const SINGLE: bool>(question: crate::Test) -> Test {
    macro_rules! ask {
        (|$format:ident, $bits:ident| $body:expr) => {
            if SINGLE {
                test!(|$bits, _b| {
                    let $format = F32;
                    $body
                })
            } else {
                test!(|$bits, _b| {
                    let $format = F64;
                    $body
                })
            }
        };
    }
    use crate::Test as Ask;
    match question {
        Ask::Finite => ask!(|f, x| x & (f.sign_bit() - 1) < f.infinity(false)),
        Ask::Infinite => ask!(|f, x| x & (f.sign_bit() - 1) == f.infinity(false)),
        Ask::Number => ask!(|f, x| !f.is_nan(x)),
        Ask::NotANumber => ask!(|f, x| f.is_nan(x)),
        Ask::Normal => ask!(|f, x| {
            // Zero counts as normal.
            x & (f.sign_bit() - 1) < f.infinity(false) && !f.is_subnormal(x)
        }),
        Ask::Subnormal => ask!(|f, x| f.is_subnormal(x)),
    }
}
