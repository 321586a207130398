//! Operations on bits.

use super::integer::integers;
use super::{Alu, lanes};
use crate::{Permute, ScalarType};

/// `a & b`, `a | b`, `a ^ b`, `!a` of a width of `bytes`.
pub(crate) fn and() -> Alu {
    lanes!(|a, b| a & b)
}

pub(crate) fn or() -> Alu {
    lanes!(|a, b| a | b)
}

pub(crate) fn xor() -> Alu {
    lanes!(|a, b| a ^ b)
}

pub(crate) fn not(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, _b, _c| !a)
}

/// 1 for zero, 0 for all else.
pub(crate) fn is_zero(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, _b, _c| T::from(a == 0))
}

/// Any function of three bits, looked up bit by bit in the table `d`.
pub(crate) fn lookup() -> Alu {
    lanes!(_mode, |a, b, c, table| {
        let mut out = 0;
        for index in 0..8u32 {
            let pick = |x: u64, bit: u32| if index >> bit & 1 != 0 { x } else { !x };
            if table >> index & 1 != 0 {
                out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
            }
        }
        out & 0xffff_ffff
    })
}

/// How far to shift, in the width of the operand: one that changes costs more than the shift.
#[inline(always)]
fn count(bits: u64) -> u64 {
    bits & 0xffff_ffff
}

/// `a << b`; by the width and more it is zero.
pub(crate) fn shift_left(ty: ScalarType) -> Option<Alu> {
    Some(match ty.size_bytes() {
        2 => lanes!(|a, b| if b as u32 > 15 { 0 } else { u64::from((a as u16) << b as u32) }),
        4 => lanes!(|a, b| if count(b) > 31 { 0 } else { (a << count(b)) & 0xffff_ffff }),
        8 => lanes!(|a, b| if b as u32 > 63 { 0 } else { a << b as u32 }),
        _ => return None,
    })
}

/// `a >> b`; by the width and more only the sign is left.
pub(crate) fn shift_right(ty: ScalarType) -> Option<Alu> {
    Some(match ty {
        ScalarType::S16 => lanes!(|a, b| u64::from((a as i16 >> (b as u32).min(15)) as u16)),
        ScalarType::S32 => lanes!(|a, b| u64::from((a as i32 >> (b as u32).min(31)) as u32)),
        ScalarType::S64 => lanes!(|a, b| (a as i64 >> (b as u32).min(63)) as u64),
        _ => match ty.size_bytes() {
            2 => lanes!(|a, b| if b as u32 > 15 { 0 } else { u64::from(a as u16 >> b as u32) }),
            4 => lanes!(|a, b| if count(b) > 31 { 0 } else { (a & 0xffff_ffff) >> count(b) }),
            8 => lanes!(|a, b| if b as u32 > 63 { 0 } else { a >> b as u32 }),
            _ => return None,
        },
    })
}

/// The 64 bits `b:a` shifted by `c`: the upper word of a left shift, the lower of a right one.
pub(crate) fn funnel(left: bool, wrap: bool) -> Alu {
    match (left, wrap) {
        (true, true) => lanes!(|a, b, c| (joined(a, b) << (c & 31)) >> 32),
        (true, false) => lanes!(|a, b, c| (joined(a, b) << (c as u32).min(32)) >> 32),
        (false, true) => lanes!(|a, b, c| (joined(a, b) >> (c & 31)) & 0xffff_ffff),
        (false, false) => lanes!(|a, b, c| (joined(a, b) >> (c as u32).min(32)) & 0xffff_ffff),
    }
}

fn joined(low: u64, high: u64) -> u64 {
    high << 32 | (low & 0xffff_ffff)
}

/// Ones in `a`.
pub(crate) fn count_ones() -> Alu {
    lanes!(|a| u64::from(a.count_ones()))
}

/// Zeros above the highest one.
pub(crate) fn leading_zeros(ty: ScalarType) -> Option<Alu> {
    Some(match ty.size_bytes() {
        4 => lanes!(|a| u64::from((a as u32).leading_zeros())),
        8 => lanes!(|a| u64::from(a.leading_zeros())),
        _ => return None,
    })
}

/// The place of the highest bit that is not the sign, all ones if there is none; with `shift` how far it is from the
/// top.
pub(crate) fn find_top(ty: ScalarType, shift: bool) -> Option<Alu> {
    macro_rules! find {
        ($signed:expr, $t:ty) => {
            match shift {
                false => lanes!(|a| top(a, <$t>::BITS, $signed, false)),
                true => lanes!(|a| top(a, <$t>::BITS, $signed, true)),
            }
        };
    }
    Some(match ty {
        ScalarType::U32 => find!(false, u32),
        ScalarType::S32 => find!(true, u32),
        ScalarType::U64 => find!(false, u64),
        ScalarType::S64 => find!(true, u64),
        _ => return None,
    })
}

fn top(a: u64, width: u32, signed: bool, shift: bool) -> u64 {
    let all = u64::MAX >> (64 - width);
    let value = if signed && a >> (width - 1) & 1 != 0 { !a & all } else { a & all };
    match value.checked_ilog2() {
        None => 0xffff_ffff,
        Some(place) if shift => u64::from(width - 1 - place),
        Some(place) => u64::from(place),
    }
}

/// The `c`th one in `a` counted from bit `b` upward, downward when `c` is negative; all ones if there is none.
pub(crate) fn find_nth() -> Alu {
    lanes!(|a, b, c| nth(a as u32, b as u32 & 31, c as i32))
}

fn nth(bits: u32, base: u32, count: i32) -> u64 {
    if count == 0 {
        return if bits >> base & 1 != 0 { u64::from(base) } else { 0xffff_ffff };
    }
    let mut left = count.unsigned_abs();
    let mut at = base as i32;
    while (0..32).contains(&at) {
        if bits >> at & 1 != 0 {
            left -= 1;
            if left == 0 {
                return at as u64;
            }
        }
        at += count.signum();
    }
    0xffff_ffff
}

/// The bits in reverse.
pub(crate) fn reverse(ty: ScalarType) -> Option<Alu> {
    Some(match ty.size_bytes() {
        4 => lanes!(|a| u64::from((a as u32).reverse_bits())),
        8 => lanes!(|a| a.reverse_bits()),
        _ => return None,
    })
}

/// `c` bits of `a` from bit `b`, extended by the sign where the type has one.
pub(crate) fn extract(ty: ScalarType) -> Option<Alu> {
    Some(match ty {
        ScalarType::U32 => lanes!(|a, b, c| field(a, b, c, 32, false)),
        ScalarType::S32 => lanes!(|a, b, c| field(a, b, c, 32, true)),
        ScalarType::U64 => lanes!(|a, b, c| field(a, b, c, 64, false)),
        ScalarType::S64 => lanes!(|a, b, c| field(a, b, c, 64, true)),
        _ => return None,
    })
}

/// A start or length: eight bits of it count for a word, all of them for a double word.
fn extent(bits: u64, width: u32) -> u32 {
    if width == 32 { bits as u32 & 0xff } else { (bits as u32).min(0xff) }
}

fn field(a: u64, start: u64, len: u64, width: u32, signed: bool) -> u64 {
    let (start, len) = (extent(start, width), extent(len, width));
    let all = u64::MAX >> (64 - width);
    if len == 0 {
        return 0;
    }
    let sign_at = (start + len - 1).min(width - 1);
    let sign = signed && a >> sign_at & 1 != 0;
    let taken = if start < width { (a & all) >> start } else { 0 };
    let kept = len.min(width.saturating_sub(start));
    let mask = if kept == 0 { 0 } else { u64::MAX >> (64 - kept) };
    let above = if sign { all & !mask } else { 0 };
    (taken & mask) | above
}

/// `b` with `d` bits from bit `c` replaced by the low bits of `a`.
pub(crate) fn insert(ty: ScalarType) -> Option<Alu> {
    Some(match ty.size_bytes() {
        4 => lanes!(_mode, |a, b, c, d| replace(a, b, c, d, 32)),
        8 => lanes!(_mode, |a, b, c, d| replace(a, b, c, d, 64)),
        _ => return None,
    })
}

fn replace(a: u64, b: u64, start: u64, len: u64, width: u32) -> u64 {
    let (start, len) = (extent(start, width), extent(len, width));
    if start >= width || len == 0 {
        return b;
    }
    let len = len.min(width - start);
    let mask = (u64::MAX >> (64 - len)) << start;
    (b & !mask) | (a << start & mask)
}

/// `b` ones from bit `a`.
pub(crate) fn mask(clamp: bool) -> Alu {
    match clamp {
        true => lanes!(|a, b| ones((a as u32).min(32), (b as u32).min(32))),
        false => lanes!(|a, b| ones(a as u32 & 31, b as u32 & 31)),
    }
}

fn ones(start: u32, len: u32) -> u64 {
    (((1u64 << len) - 1) << start) & 0xffff_ffff
}

/// The low `b` bits of `a`, extended by sign or zero.
pub(crate) fn extend(signed: bool, clamp: bool) -> Alu {
    match (signed, clamp) {
        (true, true) => lanes!(|a, b| low_bits(a, (b as u32).min(32), true)),
        (true, false) => lanes!(|a, b| low_bits(a, b as u32 & 31, true)),
        (false, true) => lanes!(|a, b| low_bits(a, (b as u32).min(32), false)),
        (false, false) => lanes!(|a, b| low_bits(a, b as u32 & 31, false)),
    }
}

fn low_bits(a: u64, len: u32, signed: bool) -> u64 {
    let mask = (1u64 << len) - 1;
    let negative = signed && len > 0 && a >> (len - 1) & 1 != 0;
    if negative { (a | !mask) & 0xffff_ffff } else { a & mask }
}

/// Bytes of `b:a` picked by the nibbles of `c`; bit 3 of a nibble spreads the sign of the byte instead.
pub(crate) fn permute(mode: Option<Permute>) -> Alu {
    match mode {
        None => lanes!(|a, b, c| pick_bytes(joined(a, b), c)),
        Some(Permute::F4e) => lanes!(|a, b, c| pick_bytes(joined(a, b), 0x3210 + 0x1111 * (c & 3))),
        Some(Permute::B4e) => lanes!(|a, b, c| pick_backward(joined(a, b), c & 3)),
        Some(Permute::Rc8) => lanes!(|a, b, c| pick_bytes(joined(a, b), 0x1111 * (c & 3))),
        Some(Permute::Ecl) => lanes!(|a, b, c| pick_bytes(joined(a, b), ECL[(c & 3) as usize])),
        Some(Permute::Ecr) => lanes!(|a, b, c| pick_bytes(joined(a, b), ECR[(c & 3) as usize])),
        Some(Permute::Rc16) => {
            lanes!(|a, b, c| pick_bytes(joined(a, b), if c & 1 == 0 { 0x1010 } else { 0x3232 }))
        }
    }
}

const ECL: [u64; 4] = [0x3210, 0x3211, 0x3222, 0x3333];
const ECR: [u64; 4] = [0x0000, 0x1110, 0x2210, 0x3210];

fn pick_bytes(bytes: u64, selection: u64) -> u64 {
    let mut out = 0;
    for place in 0..4 {
        let pick = selection >> (4 * place) & 0xf;
        let byte = bytes >> (8 * (pick & 7)) & 0xff;
        let byte = if pick & 8 == 0 { byte } else { 0xff * (byte >> 7) };
        out |= byte << (8 * place);
    }
    out
}

fn pick_backward(bytes: u64, start: u64) -> u64 {
    let selection = (0..4).fold(0, |all, place: u64| all | ((start.wrapping_sub(place)) & 7) << (4 * place));
    pick_bytes(bytes, selection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_out_with_their_sign() {
        assert_eq!(field(0xabcd_1234, 8, 8, 32, false), 0x12);
        assert_eq!(field(0xabcd_1234, 16, 16, 32, true), 0xffff_abcd);
        assert_eq!(field(0x8000_0000, 31, 8, 32, true), 0xffff_ffff);
        assert_eq!(field(0x8000_0000, 40, 8, 32, true), 0xffff_ffff);
        assert_eq!(field(0x8000_0000, 40, 8, 32, false), 0);
        assert_eq!(field(u64::MAX, 60, 10, 64, false), 15);
    }

    #[test]
    fn nth_bit_counts_both_ways() {
        assert_eq!(nth(0b1011_0000, 0, 1), 4);
        assert_eq!(nth(0b1011_0000, 4, 2), 5);
        assert_eq!(nth(0b1011_0000, 7, -2), 5);
        assert_eq!(nth(0b1011_0000, 0, 4), 0xffff_ffff);
        assert_eq!(nth(0b1011_0000, 6, 0), 0xffff_ffff);
    }

    #[test]
    fn bytes_are_permuted_as_documented() {
        assert_eq!(pick_bytes(0x8877_6655_4433_2211, 0x0123), 0x1122_3344);
        assert_eq!(pick_bytes(0x8877_6655_4433_2211, 0xf765), 0xff88_7766);
        assert_eq!(pick_backward(0x8877_6655_4433_2211, 0), 0x6677_8811);
    }
}
