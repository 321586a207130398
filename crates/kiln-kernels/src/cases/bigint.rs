//! Arithmetic with carries.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("bigint");

/// Words and the carry out, of a sum or a difference.
fn chain(a: &[u32], b: &[u32], step: impl Fn(i64, i64) -> i64) -> Vec<u32> {
    let mut carry = 0i64;
    let mut words: Vec<u32> = Vec::new();
    for (x, y) in a.iter().zip(b) {
        let total = step(i64::from(*x), i64::from(*y)) + carry;
        words.push(total as u32);
        carry = total >> 32;
    }
    words.push(carry as u32);
    words
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "add_256",
        CaseShape::linear(2, 64),
        |r| {
            // Long runs of ones make carries travel.
            let words = |r: &mut crate::Random| {
                r.list(8 * 100, |r| [0, 1, u32::MAX, r.next() as u32][r.within(0, 3) as usize])
            };
            vec![
                exact(words(r)),
                exact(words(r)),
                exact(vec![0u32; 900]),
                exact(vec![0u32; 900]),
                value(100u32),
            ]
        },
        |a| {
            let (x, y) = (a.u32s(0), a.u32s(1));
            let pairs = || x.chunks(8).zip(y.chunks(8));
            a.set(2, pairs().flat_map(|(x, y)| chain(x, y, |x, y| x + y)).collect::<Vec<u32>>());
            a.set(3, pairs().flat_map(|(x, y)| chain(x, y, |x, y| x - y)).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "multiply_128",
        CaseShape::linear(2, 64),
        |r| vec![
            exact(r.list(100, |r| r.next())),
            exact(r.list(100, |r| r.next())),
            exact(vec![0u64; 400]),
            value(100u32)
        ],
        |a| {
            let (x, y) = (a.u64s(0), a.u64s(1));
            let product = |(x, y): (&u64, &u64)| {
                let wide = u128::from(*x) * u128::from(*y);
                [wide as u64, (wide >> 64) as u64, wide as u64, (wide >> 64) as u64]
            };
            a.set(2, x.iter().zip(&y).flat_map(product).collect::<Vec<u64>>());
        }
    ),
    case!(
        SOURCE,
        "power_mod",
        CaseShape::linear(1, 96),
        |r| vec![
            exact(r.list(90, |r| r.next())),
            exact(r.u32s(90, 100_000)),
            value(1_000_000_007u64),
            exact(vec![0u64; 90]),
            value(90u32)
        ],
        |a| {
            let (base, exponent, modulus) = (a.u64s(0), a.u32s(1), a.integer(2));
            let power = |(b, e): (&u64, &u32)| (0..*e).fold(1, |r, _| r * (b % modulus) % modulus);
            a.set(3, base.iter().zip(&exponent).map(power).collect::<Vec<u64>>());
        }
    ),
];
