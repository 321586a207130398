//! Half precision.

use crate::argument::{exact, value};
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::seeded_inputs::Random;
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("half");

/// A format of 16 bits: exponent bits and fraction bits.
#[derive(Clone, Copy)]
pub(super) struct Format {
    exponent: i32,
    fraction: i32,
}

pub(super) const HALF: Format = Format { exponent: 5, fraction: 10 };
pub(super) const BRAIN: Format = Format { exponent: 8, fraction: 7 };

#[derive(Clone, Copy)]
pub(super) enum Toward {
    Nearest,
    Zero,
    Down,
    Up,
}

impl Format {
    pub(super) fn widen(self, bits: u16) -> f64 {
        let bits = i32::from(bits);
        let sign = if bits >> 15 != 0 { -1.0 } else { 1.0 };
        let bias = (1 << (self.exponent - 1)) - 1;
        let (biased, fraction) =
            (bits >> self.fraction & ((1 << self.exponent) - 1), bits & ((1 << self.fraction) - 1));
        let part = f64::from(fraction) / f64::from(1 << self.fraction);
        sign * match biased {
            0 => part * 2f64.powi(1 - bias),
            b if b == (1 << self.exponent) - 1 => {
                if fraction == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            b => (1.0 + part) * 2f64.powi(b - bias),
        }
    }

    /// The bits of an exact value; the step between representable numbers is found by its exponent.
    pub(super) fn narrow(self, x: f64, toward: Toward) -> u16 {
        if x.is_nan() {
            return 0x7fff;
        }
        let sign = u16::from(x.is_sign_negative()) << 15;
        let bias = (1 << (self.exponent - 1)) - 1;
        let infinity = ((1u16 << self.exponent) - 1) << self.fraction;
        if x.is_infinite() {
            return sign | infinity;
        }
        let magnitude = x.abs();
        let exponent = if magnitude == 0.0 {
            1 - bias
        } else {
            ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias)
        };
        let unit = 2f64.powi(exponent - self.fraction);
        let steps = magnitude / unit;
        let whole = match (toward, x < 0.0) {
            (Toward::Nearest, _) => steps.round_ties_even(),
            (Toward::Zero, _) | (Toward::Down, false) | (Toward::Up, true) => steps.floor(),
            _ => steps.ceil(),
        };
        // Counting steps from the smallest subnormal runs through the encodings in order.
        let bits = ((exponent + bias - 1) as u64) * (1 << self.fraction) + whole as u64;
        let overflow = bits >= u64::from(infinity);
        match (overflow, toward, x < 0.0) {
            (false, ..) => sign | bits as u16,
            (_, Toward::Zero, _) | (_, Toward::Down, false) | (_, Toward::Up, true) => sign | (infinity - 1),
            _ => sign | infinity,
        }
    }
}

fn moderate(r: &mut Random, count: usize, format: Format) -> Vec<u16> {
    r.list(count, |r| format.narrow(r.float(-30.0, 30.0), Toward::Nearest))
}

/// The extreme of two halves: a number wins over NaN.
fn extreme(format: Format, a: u16, b: u16, smaller: bool) -> u16 {
    let (x, y) = (format.widen(a), format.widen(b));
    let first = if smaller { x < y } else { x > y };
    if first || x == y { a } else { b }
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "half_axpy",
        CaseShape::linear(4, 64),
        |r| vec![exact(moderate(r, 250, HALF)), exact(moderate(r, 250, HALF)), value(1.7f32), value(250u32)],
        |a| {
            let scale = HALF.widen(HALF.narrow(f64::from(a.float(2)), Toward::Nearest));
            let (x, y) = (a.u16s(0), a.u16s(1));
            let fused =
                |(x, y): (&u16, &u16)| HALF.narrow(scale * HALF.widen(*x) + HALF.widen(*y), Toward::Nearest);
            a.set(1, x.iter().zip(&y).map(fused).collect::<Vec<u16>>());
        }
    ),
    case!(
        SOURCE,
        "half2_arithmetic",
        CaseShape::linear(2, 64),
        |r| vec![
            exact(moderate(r, 200, HALF)),
            exact(moderate(r, 200, HALF)),
            exact(vec![0u16; 1000]),
            value(100u32)
        ],
        |a| {
            let (x, y) = (a.u16s(0), a.u16s(1));
            let round = |v: f64| HALF.narrow(v, Toward::Nearest);
            let pair = |(x, y): (&[u16], &[u16])| {
                let each = |f: &dyn Fn(u16, u16) -> u16| [f(x[0], y[0]), f(x[1], y[1])];
                let wide = |f: fn(f64, f64) -> f64| each(&|a, b| round(f(HALF.widen(a), HALF.widen(b))));
                let largest = each(&|a, b| extreme(HALF, a ^ 0x8000, extreme(HALF, a, b, true), false));
                [wide(|a, b| a + b), wide(|a, b| a - b), wide(|a, b| a * b), wide(|a, b| a * b + a), largest]
                    .concat()
            };
            a.set(2, x.chunks(2).zip(y.chunks(2)).flat_map(pair).collect::<Vec<u16>>());
        }
    ),
    case!(
        SOURCE,
        "bf16_arithmetic",
        CaseShape::linear(2, 64),
        |r| vec![
            exact(moderate(r, 100, BRAIN)),
            exact(moderate(r, 100, BRAIN)),
            exact(vec![0u16; 400]),
            value(100u32)
        ],
        |a| {
            let (x, y) = (a.u16s(0), a.u16s(1));
            let round = |v: f64| BRAIN.narrow(v, Toward::Nearest);
            let four = |(a, b): (&u16, &u16)| {
                let (x, y) = (BRAIN.widen(*a), BRAIN.widen(*b));
                [round(x + y), round(x * y), round(x * y + y), extreme(BRAIN, *a, *b, false)]
            };
            a.set(2, x.iter().zip(&y).flat_map(four).collect::<Vec<u16>>());
        }
    ),
    case!(
        SOURCE,
        "half_round",
        CaseShape::linear(5, 64),
        |r| {
            let wild = r.wild_f32s(150);
            let near = r.f32s(150, -70_000.0, 70_000.0);
            vec![exact([wild, near].concat()), exact(vec![0u16; 2400]), value(300u32)]
        },
        |a| {
            let all = [Toward::Nearest, Toward::Zero, Toward::Down, Toward::Up];
            let eight = |x: &f32| {
                let x = f64::from(*x);
                let round = |format: Format| all.map(|toward| format.narrow(x, toward));
                [round(HALF), round(BRAIN)].concat()
            };
            a.set(1, a.f32s(0).iter().flat_map(eight).collect::<Vec<u16>>());
        }
    ),
    case!(
        SOURCE,
        "half_widen",
        CaseShape::linear(8, 128),
        |r| vec![
            exact(r.list(1000, |r| r.next() as u16)),
            exact(vec![0f32; 2000]).judged(Compare::Ulps(0)),
            value(1000u32)
        ],
        |a| {
            let both = |x: &u16| [HALF.widen(*x) as f32, BRAIN.widen(*x) as f32];
            a.set(1, a.u16s(0).iter().flat_map(both).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "half_compare",
        CaseShape::linear(4, 64),
        |r| {
            let b = r.list(250, |r| r.next() as u16);
            let a = b
                .iter()
                .map(|b| if r.within(0, 2) == 0 { *b } else { r.next() as u16 })
                .collect::<Vec<u16>>();
            vec![exact(a), exact(b), exact(vec![0u32; 250]), value(250u32)]
        },
        |a| {
            let (x, y) = (a.u16s(0), a.u16s(1));
            let bits = |(a, b): (&u16, &u16)| {
                let (x, y) = (HALF.widen(*a), HALF.widen(*b));
                let unordered = x.is_nan() || y.is_nan();
                let flags = [
                    x < y,
                    x <= y,
                    x == y,
                    x.partial_cmp(&y).is_some_and(std::cmp::Ordering::is_ne),
                    unordered || x < y,
                    unordered || x == y,
                    x.is_nan(),
                ];
                let word = flags.iter().zip(0..).fold(0u32, |word, (flag, at)| word | u32::from(*flag) << at);
                word | ((x as i32) << 8) as u32
            };
            a.set(2, x.iter().zip(&y).map(bits).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "half_atomic",
        CaseShape::linear(1, 64),
        |r| {
            // Small whole numbers, so that no sum is rounded whatever its order.
            let small = |r: &mut Random| HALF.narrow(r.within(-2, 2) as f64, Toward::Nearest);
            vec![exact(r.list(256, small)), exact(vec![0u16; 2]), exact(vec![0u16; 2]), value(128u32)]
        },
        |a| {
            let x = a.u16s(0);
            let sum = |at: usize| x.iter().skip(at).step_by(2).map(|x| HALF.widen(*x)).sum::<f64>() + 0.0;
            a.set(1, [0, 1].map(|at| HALF.narrow(sum(at), Toward::Nearest)).to_vec());
            a.set(2, [0, 1].map(|at| BRAIN.narrow(sum(at), Toward::Nearest)).to_vec());
        }
    ),
];
