//! Stencil kernels.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("stencil");
const WEIGHTS: [f32; 9] = [0.0625, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625];

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "convolve_1d",
        CaseShape::linear(5, 128).shared((128 + 10) * 4),
        |r| vec![
            exact(r.f32s(640, -1.0, 1.0)),
            exact(r.f32s(11, -1.0, 1.0)),
            exact(vec![0f32; 640]),
            value(640i32),
            value(5i32)
        ],
        |a| {
            let (x, kernel) = (a.f32s(0), a.f32s(1));
            let cell = |i: usize| {
                let at = |k: usize| (i + k).checked_sub(5).and_then(|at| x.get(at)).copied().unwrap_or(0.0);
                (0..11).fold(0f32, |sum, k| sum + at(k) * kernel[k])
            };
            a.set(2, (0..640).map(cell).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "convolve_2d",
        CaseShape::cubic([3, 4, 1], [16, 8, 1]),
        |r| vec![exact(r.f32s(45 * 30, 0.0, 255.0)), exact(vec![0f32; 45 * 30]), value(45i32), value(30i32)],
        |a| {
            let x = a.f32s(0);
            let cell = |at: i32| {
                let (u, v) = (at % 45, at / 45);
                (0..9).fold(0f32, |sum, k| {
                    let (u, v) = ((u + k % 3 - 1).clamp(0, 44), (v + k / 3 - 1).clamp(0, 29));
                    sum + x[(v * 45 + u) as usize] * WEIGHTS[k as usize]
                })
            };
            a.set(1, (0..45 * 30).map(cell).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "jacobi",
        CaseShape::cubic([2, 5, 1], [32, 4, 1]),
        |r| vec![exact(r.f64s(40 * 20, -1.0, 1.0)), exact(vec![0f64; 40 * 20]), value(40i32), value(20i32)],
        |a| {
            let x = a.f64s(0);
            let cell = |at: usize| match (at % 40, at / 40) {
                (0 | 39, _) | (_, 0 | 19) => x[at],
                _ => 0.25 * (x[at - 1] + x[at + 1] + x[at - 40] + x[at + 40]),
            };
            a.set(1, (0..40 * 20).map(cell).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "life",
        CaseShape::cubic([3, 3, 1], [16, 16, 1]),
        |r| vec![
            exact(r.list(48 * 48, |r| u8::from(r.within(0, 2) == 0))),
            exact(vec![0u8; 48 * 48]),
            value(48i32)
        ],
        |a| {
            let x = a.u8s(0);
            let cell = |at: usize| {
                let (u, v) = (at % 48 + 47, at / 48 + 47);
                let around = (0..9).filter(|k| *k != 4);
                let n: u8 = around.map(|k| x[(v + k / 3) % 48 * 48 + (u + k % 3) % 48]).sum();
                u8::from(n == 3 || (n == 2 && x[at] != 0))
            };
            a.set(1, (0..48 * 48).map(cell).collect::<Vec<u8>>());
        }
    ),
    case!(
        SOURCE,
        "heat_3d",
        CaseShape::cubic([2, 2, 1], [8, 8, 1]),
        |r| vec![exact(r.f32s(12 * 12 * 12, 0.0, 100.0)), exact(vec![0f32; 12 * 12 * 12]), value(12i32)],
        |a| {
            let x = a.f32s(0);
            let mut out = a.f32s(1);
            let inner = || 1..11usize;
            for at in
                inner().flat_map(|z| inner().flat_map(move |y| inner().map(move |x| (z * 12 + y) * 12 + x)))
            {
                let around = x[at - 1] + x[at + 1] + x[at - 12] + x[at + 12] + x[at - 144] + x[at + 144];
                out[at] = x[at] + 0.1 * (around - 6.0 * x[at]);
            }
            a.set(1, out);
        }
    ),
];
