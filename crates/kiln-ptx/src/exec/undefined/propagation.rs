//! What an operation does with undefined bits of its operands.

/// How the bits of an operation's result follow from those of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum DataFlow {
    /// Every bit may depend on every bit.
    #[default]
    Computes,
    /// The sum of the first two operands, as integers.
    Sum,
    /// The first operand less the second.
    Difference,
    /// The first operand with the other sign.
    Negation,
    /// The product of the first two operands, as integers of so many bits, and the third added to it.
    Product(u8),
    /// The same, without the low bits of the product.
    HighProduct(u8),
    /// The sum of the products of four bytes, and the third operand added to it.
    BytesProduct,
    /// The sum of the products of two half words with the lower or the upper two bytes, and the third operand added to it.
    HalvesProduct { high: bool },
    /// The smaller or the greater of two integers of so many bits.
    Extreme { bits: u8, signed: bool, smaller: bool },
    /// The place of the highest bit that is set, or of the highest one that differs from the sign, in an integer of so many bits.
    TopBit { bits: u8, signed: bool },
    /// Each part of the result follows from the parts of all operands at its place. They have so many bits in the operands, and so many in the
    /// result. A comparison looks at the lowest part.
    Parts { from: u8, to: u8 },
    /// The second operand becomes the lowest part of so many bits, the first the part above it, and the bits of the third are moved above both.
    Packs(u8),
    /// Whether two integers of so many bits are equal.
    Equality(u8),
    /// Which of two integers of so many bits is less.
    Order { bits: u8, signed: bool },
    /// Bits of the operands in this set (bit 0 for the first) are moved, copied or dropped, as the other operands say.
    Moves(u8),
    /// Each bit follows from the bits at its place: bit `4a + 2b + c` of the table.
    Bitwise(u8),
    /// The same, with the table in the fourth operand.
    Lookup,
}

impl DataFlow {
    /// Tables of operations with one and two operands; the third is not looked at.
    pub(crate) const AND: Self = Self::Bitwise(0xc0);
    pub(crate) const OR: Self = Self::Bitwise(0xfc);
    pub(crate) const XOR: Self = Self::Bitwise(0x3c);
    pub(crate) const NOT: Self = Self::Bitwise(0x0f);

    /// Whether an operand is moved, and does not decide where bits go.
    pub(crate) fn is_data(self, operand: usize) -> bool {
        match self {
            Self::Moves(set) => set >> operand & 1 != 0,
            Self::Bitwise(_) => true,
            Self::Lookup => operand < 3,
            _ => false,
        }
    }

    /// Whether it is a packed value, whose parts are undefined apart.
    pub(crate) fn is_packed(self) -> bool {
        matches!(self, Self::Parts { .. } | Self::Packs(_))
    }
}

/// Whether a comparison of two values, each with its undefined bits, depends on them. `holds` compares two values.
pub(crate) fn undefined_comparison(
    flow: DataFlow,
    a: (u64, u64),
    b: (u64, u64),
    holds: impl Fn(u64, u64) -> bool,
) -> bool {
    let ones = |bits: u8| u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
    match flow {
        _ if a.1 | b.1 == 0 => false,
        // A defined bit that differs decides.
        DataFlow::Equality(bits) => {
            (a.1 | b.1) & ones(bits) != 0 && (a.0 ^ b.0) & !(a.1 | b.1) & ones(bits) == 0
        }
        DataFlow::Parts { from, .. } => (a.1 | b.1) & ones(from) != 0,
        // The order depends on the undefined bits if it differs between the least and the greatest that both can be.
        DataFlow::Order { bits, signed } => {
            let sign = if signed { 1 << (bits.clamp(1, 64) - 1) } else { 0 };
            let least = |(value, undefined): (u64, u64)| (value & !undefined) | (undefined & sign);
            let greatest = |(value, undefined): (u64, u64)| (value | undefined) & !(undefined & sign);
            holds(least(a), greatest(b)) != holds(greatest(a), least(b))
        }
        _ => true,
    }
}

/// The bits of a bitwise result that depend on an undefined bit. Each operand is its value and its undefined bits.
pub(crate) fn undefined_bitwise(operands: [(u64, u64); 3], table: u64) -> u64 {
    let (mut may_be_one, mut may_be_zero) = (0, 0);
    for index in 0..8u32 {
        let mut possible = u64::MAX;
        for (place, (value, undefined)) in operands.iter().enumerate() {
            let wanted = if index >> (2 - place) & 1 != 0 { *value } else { !value };
            possible &= wanted | undefined;
        }
        match table >> index & 1 {
            0 => may_be_zero |= possible,
            _ => may_be_one |= possible,
        }
    }
    may_be_one & may_be_zero
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitwise(flow: DataFlow, a: (u64, u64), b: (u64, u64)) -> u64 {
        let DataFlow::Bitwise(table) = flow else { panic!("{flow:?} has no table") };
        undefined_bitwise([a, b, (0, 0)], u64::from(table))
    }

    #[test]
    fn masks_take_undefined_bits_away() {
        assert_eq!(bitwise(DataFlow::AND, (0, 0xffff), (0xff, 0)), 0xff);
        assert_eq!(bitwise(DataFlow::AND, (0, 0xffff), (0, 0)), 0);
        assert_eq!(bitwise(DataFlow::OR, (0, 0xffff), (0xff, 0)), 0xff00);
        assert_eq!(bitwise(DataFlow::XOR, (0, 0xf0), (0xff, 0x0f)), 0xff);
        assert_eq!(bitwise(DataFlow::NOT, (5, 0xf0), (0, 0)), 0xf0);
    }

    #[test]
    fn the_tables_are_those_of_the_operations() {
        for (flow, operation) in [
            (DataFlow::AND, (|a, b| a & b) as fn(u64, u64) -> u64),
            (DataFlow::OR, |a, b| a | b),
            (DataFlow::XOR, |a, b| a ^ b),
            (DataFlow::NOT, |a, _| !a & 1),
        ] {
            let DataFlow::Bitwise(table) = flow else { panic!("{flow:?} has no table") };
            for index in 0..8u64 {
                let (a, b) = (index >> 2 & 1, index >> 1 & 1);
                assert_eq!(u64::from(table) >> index & 1, operation(a, b), "{flow:?} {a} {b}");
            }
        }
    }

    #[test]
    fn comparisons_are_undefined_where_an_undefined_bit_changes_them() {
        // Every value of four bits and every set of undefined ones, against a constant.
        let sign_extended = |value: u64| (value << 60) as i64 >> 60;
        for (value, undefined, other) in
            (0..16u64).flat_map(|v| (0..16u64).flat_map(move |u| (0..16u64).map(move |o| (v, u, o))))
        {
            let possible = || (0..16u64).filter(|x| (x ^ value) & !undefined == 0);
            let depends = |holds: &dyn Fn(u64, u64) -> bool| {
                possible().any(|x| holds(x, other)) && possible().any(|x| !holds(x, other))
            };
            type Comparison<'a> = &'a dyn Fn(u64, u64) -> bool;
            let cases: [(DataFlow, Comparison<'_>); 3] = [
                (DataFlow::Equality(4), &|a, b| a & 15 == b & 15),
                (DataFlow::Order { bits: 4, signed: false }, &|a, b| a & 15 < b & 15),
                (DataFlow::Order { bits: 4, signed: true }, &|a, b| sign_extended(a) <= sign_extended(b)),
            ];
            for (flow, holds) in cases {
                let found = undefined_comparison(flow, (value, undefined), (other, 0), holds);
                assert_eq!(found, depends(holds), "{flow:?} {value} {undefined:b} {other}");
            }
        }
    }

    #[test]
    fn a_lookup_is_undefined_where_an_undefined_bit_changes_it() {
        // a ? b : c, with `a` undefined: only where `b` and `c` differ.
        assert_eq!(undefined_bitwise([(0, 0b1111), (0b0011, 0), (0b0101, 0)], 0xca), 0b0110);
        // The side that is not picked may be undefined.
        assert_eq!(undefined_bitwise([(0b1100, 0), (0, 0b0011), (0, 0b1100)], 0xca), 0);
        assert_eq!(undefined_bitwise([(0b1100, 0), (0, 0b1111), (0, 0)], 0xca), 0b1100);
    }
}
