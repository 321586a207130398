//! Reductions of blocks and warps.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("reduce");
const COUNT: usize = 3000;
const N: u32 = COUNT as u32;

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "block_sum",
        CaseShape::linear(6, 256),
        |r| vec![exact(r.f32s(COUNT, -1.0, 1.0)), exact(vec![0f32; 6]), value(N)],
        |a| {
            let x = a.f32s(0);
            let at = |i: usize| x.get(i).copied().unwrap_or(0.0);
            let block = |b: usize| {
                // The kernel starts from 0 and adds in pairs of threads.
                let mut s: Vec<f32> =
                    (0..256).map(|t| (0.0 + at(b * 512 + t)) + at(b * 512 + t + 256)).collect();
                for half in [128, 64, 32, 16, 8, 4, 2, 1] {
                    (0..half).for_each(|t| s[t] += s[t + half]);
                }
                s[0]
            };
            a.set(1, (0..6).map(block).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "warp_sum",
        CaseShape::linear(12, 256),
        |r| vec![exact(r.i32s(COUNT, -1000, 1000)), exact(vec![0i32; 96]), value(N)],
        |a| {
            let x = a.i32s(0);
            let sums = (0..96).map(|w| x.iter().skip(w * 32).take(32).sum());
            a.set(1, sums.collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "block_max_f64",
        CaseShape::linear(3, 128).shared(128 * 8),
        |r| vec![exact(r.f64s(COUNT, -1e9, 1e9)), exact(vec![0f64; 3]), value(N)],
        |a| {
            let x = a.f64s(0);
            let most = |b: usize| {
                let own = x.iter().enumerate().filter(|(i, _)| i / 128 % 3 == b);
                own.map(|(_, x)| *x).fold(-1e308, f64::max)
            };
            a.set(1, (0..3).map(most).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "dot_atomic",
        CaseShape::linear(4, 256),
        |r| vec![
            exact(r.i32s(COUNT, i32::MIN, i32::MAX)),
            exact(r.i32s(COUNT, i32::MIN, i32::MAX)),
            exact(vec![1u64]),
            value(N)
        ],
        |a| {
            let (x, y) = (a.i32s(0), a.i32s(1));
            let products = x.iter().zip(&y).map(|(x, y)| i64::from(*x).wrapping_mul(i64::from(*y)) as u64);
            a.set(2, vec![products.fold(1u64, u64::wrapping_add)]);
        }
    ),
    case!(
        SOURCE,
        "redux",
        CaseShape::linear(2, 96),
        |r| vec![exact(r.i32s(192, i32::MIN, i32::MAX)), exact(vec![0i32; 36])],
        |a| {
            let x = a.i32s(0);
            let warp = |w: &[i32]| {
                [
                    w.iter().fold(0i32, |s, x| s.wrapping_add(*x)),
                    *w.iter().min().unwrap_or(&0),
                    *w.iter().max().unwrap_or(&0),
                    w.iter().fold(-1, |s, x| s & (x | 0xff)),
                    w.iter().fold(0, |s, x| s | (x & 0xff_0000)),
                    w.iter().fold(0, |s, x| s ^ x),
                ]
            };
            a.set(1, x.chunks(32).flat_map(warp).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "arg_min",
        CaseShape::linear(3, 64),
        |r| vec![exact(r.words(COUNT)), exact(vec![u64::MAX]), value(N)],
        |a| {
            let x = a.u32s(0);
            let best = x.iter().zip(0u64..).map(|(x, i)| u64::from(*x) << 32 | i).min();
            a.set(1, vec![best.unwrap_or(u64::MAX)]);
        }
    ),
    case!(
        SOURCE,
        "count_barrier",
        CaseShape::linear(5, 160),
        |r| vec![exact(r.i32s(800, -1000, 1000)), exact(vec![0i32; 5])],
        |a| {
            let x = a.i32s(0);
            let block = |b: &[i32]| {
                let count = b.iter().filter(|x| **x > 0).count() as i32;
                let (all, any) = (b.iter().all(|x| *x > -900), b.iter().any(|x| *x > 990));
                count | i32::from(all) << 16 | i32::from(any) << 17
            };
            a.set(1, x.chunks(160).map(block).collect::<Vec<i32>>());
        }
    ),
];
