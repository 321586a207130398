//! What a register would hold if the undefined bits had other values.
//!
//! The rules for undefined bits look at one operation and its operands. They do not see that two operands were computed from one value, as in
//! `(a | b) - ((a ^ b) >> 1)`, the average of packed bytes, where no borrow leaves a byte. So results of two undefined operands are also computed for some other
//! values of the undefined bits. A byte that is the same for all of them does not depend on an undefined bit. Single bits are not compared: a few values of the
//! operands may leave one the same by chance.

use super::origin::Origin;
use super::propagation::DataFlow;
use crate::exec::warp_register::{Column, LANES};

/// How many other values are tried.
pub(crate) const ALTERNATIVES: usize = 12;

/// The values of a register for other values of the undefined bits.
#[derive(Clone, Debug)]
pub(crate) struct Alternatives {
    /// The lanes for which they are known.
    pub(crate) lanes: u32,
    pub(crate) values: [Column; ALTERNATIVES],
}

impl Alternatives {
    pub(crate) const UNKNOWN: Self = Self { lanes: 0, values: [[0; LANES]; ALTERNATIVES] };
}

impl DataFlow {
    /// Whether the bytes of a result are compared with those of its alternatives.
    pub(crate) fn is_compared(self) -> bool {
        matches!(self, Self::Sum | Self::Difference | Self::Negation | Self::Bitwise(_) | Self::Lookup)
    }

    /// Whether alternatives of the operands are computed further.
    pub(crate) fn has_alternatives(self) -> bool {
        self.is_compared() || matches!(self, Self::Moves(_) | Self::Product(_) | Self::Extreme { .. })
    }
}

/// The bytes in which a bit is set, with all of their bits.
pub(crate) fn whole_bytes(bits: u64) -> u64 {
    u64::from_ne_bytes(bits.to_ne_bytes().map(|byte| if byte == 0 { 0 } else { u8::MAX }))
}

/// What the bits of an undefined value are mixed from: where it comes from.
pub(crate) fn pattern_place(origin: Origin) -> u64 {
    match origin {
        Origin::Memory { address, pc, thread, .. } => {
            mixed(address) ^ mixed(u64::from(pc) << 32 | u64::from(thread))
        }
        Origin::Lane { pc, thread, from, .. } => {
            mixed(u64::from(pc) << 32 | u64::from(thread)) ^ u64::from(from)
        }
        Origin::Register { function, register } => mixed(u64::from(function) << 32 | u64::from(register)),
    }
}

/// Bits for an undefined value of a register that nothing was computed from yet: zeros, ones, and bits that are mixed from where it comes from.
pub(crate) fn pattern(number: usize, register: u32, lane: usize, place: u64) -> u64 {
    match number {
        0 => 0,
        1 => u64::MAX,
        _ => mixed(place ^ mixed(u64::from(register) << 32 | (lane as u64) << 16 | number as u64)),
    }
}

/// The finalizer of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_lanes_have_different_bits() {
        let bits = |register, lane| pattern(2, register, lane, pattern_place(Origin::NONE));
        assert_ne!(bits(1, 0), bits(2, 0));
        assert_ne!(bits(1, 0), bits(1, 1));
        assert_eq!((pattern(0, 1, 0, 5), pattern(1, 1, 0, 5)), (0, u64::MAX));
    }
}
