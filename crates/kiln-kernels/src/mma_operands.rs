//! Numbers for tensor cores: of one size, of very different sizes, and odd ones.

use crate::seeded_inputs::Random;

/// How the operands of one warp are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Exponents at most so far from that of 1.
    Near(i64),
    /// Most of them zero, of either sign.
    Zeros,
    /// Half of them subnormal.
    Subnormal,
    /// Some of them infinite or NaN.
    Special,
    /// Close to the largest number.
    Large,
    /// Any bits.
    Any,
}

impl Spread {
    /// All of them, with three distances.
    pub const ALL: [Self; 8] = [
        Self::Near(1),
        Self::Near(6),
        Self::Near(30),
        Self::Zeros,
        Self::Subnormal,
        Self::Special,
        Self::Large,
        Self::Any,
    ];
}

/// Bits of an element.
pub(crate) fn bits(element: &str) -> u32 {
    match element {
        "f64" => 64,
        "f32" | "tf32" | "s32" | "b32" => 32,
        "f16" | "bf16" => 16,
        "b1" => 1,
        "s4" | "u4" => 4,
        _ => 8,
    }
}

/// Bits of the exponent and of the fraction; none for integers.
fn format(element: &str) -> Option<(u32, u32)> {
    Some(match element {
        "f64" => (11, 52),
        "f32" | "tf32" => (8, 23),
        "bf16" => (8, 7),
        "f16" => (5, 10),
        "e5m2" => (5, 2),
        "e4m3" => (4, 3),
        _ => return None,
    })
}

/// The bits of one element of a type: `f16`, `e4m3`, `s8` and so on.
pub fn number(element: &str, spread: Spread, random: &mut Random) -> u64 {
    let all = u64::MAX >> (64 - bits(element));
    let any = random.next() & all;
    let Some((exponent_bits, fraction_bits)) = format(element) else {
        let limits = [0, 0x7fff_ffff, 0x8000_0000, 0x7fff_fff0, 0x8000_0010];
        let odd = element == "s32" && random.within(0, 3) == 0;
        return if odd { limits[random.within(0, 4) as usize] } else { any };
    };
    let sign = any & 1 << (exponent_bits + fraction_bits);
    let fraction = any & ((1 << fraction_bits) - 1);
    let top = (1i64 << exponent_bits) - 1;
    let bias = top >> 1;
    let with = |exponent: i64, fraction: u64| sign | (exponent as u64) << fraction_bits | fraction;
    let near = |distance: i64, random: &mut Random| {
        with(random.within((bias - distance).max(1), (bias + distance).min(top - 1)), fraction)
    };
    match spread {
        Spread::Near(distance) => near(distance, random),
        Spread::Zeros if random.within(0, 9) < 7 => sign,
        Spread::Subnormal if random.within(0, 1) == 0 => with(0, fraction),
        Spread::Special if random.within(0, 30) == 0 => match (element, random.within(0, 2)) {
            ("e4m3", _) => with(top, 7),
            (_, 0) => with(top, fraction | 1),
            _ => with(top, 0),
        },
        Spread::Zeros | Spread::Subnormal | Spread::Special => near(6, random),
        Spread::Large => with(top - 1 - random.within(0, 3).min(top - 2), fraction),
        Spread::Any => any,
    }
}
