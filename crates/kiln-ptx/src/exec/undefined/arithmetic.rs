//! Which bits of an arithmetic result depend on undefined bits of its operands.

use super::propagation::{DataFlow, undefined_comparison};

/// A value and its undefined bits.
type Operand = (u64, u64);

/// The bits of a result that depend on undefined bits of the operands. Each operand is its value and its undefined bits. Bits above the width of the
/// result have no meaning.
pub(crate) fn undefined_arithmetic(flow: DataFlow, operands: [Operand; 4]) -> u64 {
    let [a, b, c, _] = operands;
    if operands.iter().all(|(_, undefined)| *undefined == 0) {
        return 0;
    }
    match flow {
        DataFlow::Sum => {
            between(least(a).wrapping_add(least(b)), greatest(a).wrapping_add(greatest(b)), a, b)
        }
        DataFlow::Difference => {
            between(least(a).wrapping_sub(greatest(b)), greatest(a).wrapping_sub(least(b)), a, b)
        }
        DataFlow::Negation => between(least(a).wrapping_neg(), greatest(a).wrapping_neg(), a, (0, 0)),
        DataFlow::Product(bits) => product(low(a, bits), low(b, bits)) | upward(c.1),
        DataFlow::HighProduct(bits) if is_defined_product(low(a, bits), low(b, bits)) => upward(c.1),
        DataFlow::BytesProduct => {
            let products = (0..4).map(|place| product(part(a, 8, place), part(b, 8, place)));
            products.fold(upward(c.1), |bits, product| bits | product)
        }
        DataFlow::HalvesProduct { high } => {
            let first = if high { 2 } else { 0 };
            let products = (0..2).map(|place| product(part(a, 16, place), part(b, 8, first + place)));
            products.fold(upward(c.1), |bits, product| bits | product)
        }
        DataFlow::Extreme { bits, signed, smaller } => {
            extreme(low(a, bits), low(b, bits), bits, signed, smaller)
        }
        DataFlow::TopBit { bits, signed } if is_defined_top_bit(low(a, bits), bits, signed) => 0,
        DataFlow::Parts { from, to } => {
            let all = (0, operands.iter().fold(0, |bits, (_, undefined)| bits | undefined));
            let places =
                (0..64 / u32::from(from.max(to)).max(1)).filter(|place| part(all, from, *place).1 != 0);
            places.fold(0, |bits, place| bits | ones(to) << (place * u32::from(to)))
        }
        DataFlow::Packs(bits) => {
            let whole = |operand: Operand| if operand.1 == 0 { 0 } else { ones(bits) };
            let above = c.1.checked_shl(2 * u32::from(bits)).unwrap_or(0);
            whole(b) | whole(a) << bits | above
        }
        _ => u64::MAX,
    }
}

/// The bits from the lowest one that is set upward: a carry may change them.
pub(crate) fn upward(bits: u64) -> u64 {
    bits | bits.wrapping_neg()
}

/// The undefined bits of a sum, of which the least and the greatest value are known: those of the operands, and those that a carry reaches.
fn between(least: u64, greatest: u64, a: Operand, b: Operand) -> u64 {
    (least ^ greatest) | a.1 | b.1
}

/// The undefined bits of a product. What an undefined bit changes is multiplied by the other operand, and so has as many zeros below it as that has.
fn product(a: Operand, b: Operand) -> u64 {
    let zeros = |(value, undefined): Operand| (value | undefined).trailing_zeros();
    let changed = |changes: Operand, by: Operand| match changes.1 {
        0 => 0,
        bits => u64::MAX.checked_shl(bits.trailing_zeros() + zeros(by)).unwrap_or(0),
    };
    changed(a, b) | changed(b, a)
}

/// Whether a defined zero takes the undefined bits out of a product.
fn is_defined_product(a: Operand, b: Operand) -> bool {
    let takes_out = |zero: Operand, other: Operand| other.1 == 0 || zero == (0, 0);
    takes_out(a, b) && takes_out(b, a)
}

/// The undefined bits of the smaller or the greater of two integers: those of the one that is picked, where defined bits decide which that is.
fn extreme(a: Operand, b: Operand, bits: u8, signed: bool, smaller: bool) -> u64 {
    let sign = if signed { 1 << (bits.clamp(1, 64) - 1) } else { 0 };
    let is_less = |x: u64, y: u64| (x ^ sign) < (y ^ sign);
    if undefined_comparison(DataFlow::Order { bits, signed }, a, b, is_less) {
        return a.1 | b.1 | (a.0 ^ b.0);
    }
    if is_less(a.0, b.0) == smaller { a.1 } else { b.1 }
}

/// Whether a defined bit decides which bit is the highest.
fn is_defined_top_bit(a: Operand, bits: u8, signed: bool) -> bool {
    let sign = 1 << (bits.clamp(1, 64) - 1);
    let value = match signed && a.0 & sign != 0 {
        true => (!a.0 & ones(bits), a.1),
        false => a,
    };
    let is_sign_defined = !signed || a.1 & sign == 0;
    is_sign_defined && least(value).leading_zeros() == greatest(value).leading_zeros()
}

fn least((value, undefined): Operand) -> u64 {
    value & !undefined
}

fn greatest((value, undefined): Operand) -> u64 {
    value | undefined
}

/// The lowest bits of an operand.
fn low((value, undefined): Operand, bits: u8) -> Operand {
    (value & ones(bits), undefined & ones(bits))
}

/// A part of an operand, of so many bits.
fn part((value, undefined): Operand, bits: u8, place: u32) -> Operand {
    let at = u32::from(bits) * place;
    low((value.checked_shr(at).unwrap_or(0), undefined.checked_shr(at).unwrap_or(0)), bits)
}

fn ones(bits: u8) -> u64 {
    u64::MAX >> (64 - u32::from(bits.clamp(1, 64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value of four bits that agrees with an operand.
    fn possible((value, undefined): Operand) -> impl Iterator<Item = u64> + Clone {
        (0..16u64).filter(move |x| (x ^ value) & !undefined == 0)
    }

    /// Compares a rule with every possible value of two operands of four bits.
    fn assert_covers(flow: DataFlow, exact: bool, result: impl Fn(u64, u64) -> u64) {
        let operands = || (0..16u64).flat_map(|v| (0..16u64).map(move |u| (v, u)));
        for (a, b) in operands().flat_map(|a| operands().map(move |b| (a, b))) {
            let all = possible(a).flat_map(|x| possible(b).map(move |y| (x, y)));
            let first = result(a.0 & !a.1, b.0 & !b.1);
            let differ = all.fold(0, |bits, (x, y)| bits | (result(x, y) ^ first)) & 15;
            let found = undefined_arithmetic(flow, [a, b, (0, 0), (0, 0)]) & 15;
            assert_eq!(differ & !found, 0, "{flow:?} {a:?} {b:?}: {differ:b} and found {found:b}");
            assert!(!exact || differ == found, "{flow:?} {a:?} {b:?}: {differ:b} and found {found:b}");
        }
    }

    #[test]
    fn sums_are_undefined_where_an_undefined_bit_changes_them() {
        assert_covers(DataFlow::Sum, true, |a, b| a + b);
        assert_covers(DataFlow::Difference, true, |a, b| a.wrapping_sub(b));
        assert_covers(DataFlow::Negation, false, |a, _| a.wrapping_neg());
    }

    #[test]
    fn extremes_are_undefined_where_an_undefined_bit_changes_them() {
        let flow = |signed, smaller| DataFlow::Extreme { bits: 4, signed, smaller };
        let extended = |x: u64| (x << 60) as i64 >> 60;
        assert_covers(flow(false, true), false, u64::min);
        assert_covers(flow(false, false), false, u64::max);
        assert_covers(flow(true, true), false, |a, b| extended(a).min(extended(b)) as u64);
        assert_covers(flow(true, false), false, |a, b| extended(a).max(extended(b)) as u64);
        let high = undefined_arithmetic(flow(false, false), [(0b1000, 0b11), (0b0111, 0), (0, 0), (0, 0)]);
        assert_eq!(high, 0b11, "defined bits decide which one is greater");
    }

    #[test]
    fn products_are_undefined_where_an_undefined_bit_may_change_them() {
        assert_covers(DataFlow::Product(4), false, |a, b| a * b);
        assert_covers(DataFlow::HighProduct(4), false, |a, b| (a * b) >> 4);
        assert_eq!(undefined_arithmetic(DataFlow::Product(64), [(0, 0xff), (0, 0), (5, 0), (0, 0)]), 0);
        let high =
            |b| undefined_arithmetic(DataFlow::HighProduct(64), [(0, 1 << 63), (b, 0), (0, 0), (0, 0)]);
        assert_eq!((high(0), high(2)), (0, u64::MAX));
        assert_eq!(undefined_arithmetic(DataFlow::Product(64), [(0, 2), (12, 0), (5, 0), (0, 0)]), !0b111);
    }

    #[test]
    fn the_highest_bit_is_undefined_where_an_undefined_bit_may_be_it() {
        for (value, undefined) in (0..16u64).flat_map(|v| (0..16u64).map(move |u| (v, u))) {
            for signed in [false, true] {
                let top = |x: u64| if signed && x & 8 != 0 { !x & 15 } else { x }.leading_zeros();
                let first = top(value);
                let differs = possible((value, undefined)).any(|x| top(x) != first);
                let flow = DataFlow::TopBit { bits: 4, signed };
                let found = undefined_arithmetic(flow, [(value, undefined), (0, 0), (0, 0), (0, 0)]) != 0;
                let is_sign_defined = !signed || undefined & 8 == 0;
                assert!(!differs || found, "{value:b} {undefined:b} {signed}");
                assert!(!is_sign_defined || differs == found, "{value:b} {undefined:b} {signed}");
            }
        }
    }

    #[test]
    fn a_defined_zero_takes_an_undefined_byte_out_of_a_dot_product() {
        let with = |flow, b| undefined_arithmetic(flow, [(0, 0xff00), (b, 0), (0, 0), (0, 0)]);
        assert_eq!(with(DataFlow::BytesProduct, 0x0101_0001), 0);
        assert_eq!(with(DataFlow::BytesProduct, 0x0101_0101), u64::MAX);
        assert_eq!(with(DataFlow::HalvesProduct { high: true }, 0x0100_ffff), 0);
        assert_eq!(with(DataFlow::HalvesProduct { high: false }, 0x0001), u64::MAX << 8);
    }

    #[test]
    fn parts_of_a_packed_value_are_undefined_apart() {
        let halves = DataFlow::Parts { from: 16, to: 16 };
        assert_eq!(undefined_arithmetic(halves, [(0, 1 << 16), (0, 0), (0, 0), (0, 0)]), 0xffff_0000);
        assert_eq!(undefined_arithmetic(halves, [(0, 0), (0, 2), (0, 4), (0, 0)]), 0xffff);
        let narrows = DataFlow::Parts { from: 16, to: 8 };
        assert_eq!(undefined_arithmetic(narrows, [(0, 1 << 16), (0, 0), (0, 0), (0, 0)]), 0xff00);
        assert_eq!(undefined_arithmetic(DataFlow::Packs(16), [(0, 1), (0, 0), (0, 0), (0, 0)]), 0xffff_0000);
        assert_eq!(undefined_arithmetic(DataFlow::Packs(8), [(0, 0), (0, 1), (0, 3), (0, 0)]), 0x3_00ff);
    }

    #[test]
    fn a_carry_changes_bits_above_it_alone() {
        assert_eq!(upward(0), 0);
        assert_eq!(upward(0b1000), !0b111);
        assert_eq!(upward(1 << 63), 1 << 63);
    }
}
