//! Functions that are approximated, or built upon such.

use crate::argument::{exact, value};
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("math");
const COUNT: usize = 400;
const N: u32 = COUNT as u32;
const GRID: CaseShape = CaseShape::linear(7, 64);

/// The error function by its series, for small arguments.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "math_f32",
        GRID,
        |r| {
            let near = Compare::Close { relative: 1.5e-6, absolute: 2e-7 };
            vec![exact(r.f32s(COUNT, -10.0, 10.0)), exact(vec![0f32; 10 * COUNT]).judged(near), value(N)]
        },
        |a| {
            let ten = |x: &f32| {
                let x = f64::from(*x);
                let scaled = |by: f32| f64::from(x as f32 * by);
                [
                    x.sin(),
                    x.cos(),
                    scaled(0.1).exp(),
                    f64::from((x as f32).abs() + 1e-3f32).ln(),
                    x.abs().powf(f64::from(1.7f32)),
                    x.tanh(),
                    erf(scaled(0.2)),
                    x.atan2(3.0),
                    x.cbrt(),
                    1.0 / f64::from((x as f32).abs() + 0.5).sqrt(),
                ]
                .map(|y| y as f32)
            };
            a.set(1, a.f32s(0).iter().flat_map(ten).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "math_f64",
        GRID,
        |r| {
            let near = Compare::Close { relative: 2e-15, absolute: 4e-16 };
            vec![exact(r.f64s(COUNT, -10.0, 10.0)), exact(vec![0f64; 8 * COUNT]).judged(near), value(N)]
        },
        |a| {
            let eight = |x: &f64| {
                let x = *x;
                [
                    x.sin(),
                    x.cos(),
                    (x * 0.1).exp(),
                    (x.abs() + 1e-3).ln(),
                    x.abs().powf(1.7),
                    x.tanh(),
                    x.atan(),
                    x.hypot(2.5),
                ]
            };
            a.set(1, a.f64s(0).iter().flat_map(eight).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "math_fast",
        GRID,
        |r| {
            // The documented bounds: 2^-20.5 for sine and cosine, about 2^-11 for tanh, few units for the others.
            let near = Compare::Close { relative: 6e-4, absolute: 2e-6 };
            vec![exact(r.f32s(COUNT, -10.0, 10.0)), exact(vec![0f32; 7 * COUNT]).judged(near), value(N)]
        },
        |a| {
            let seven = |x: &f32| {
                let tenth = f64::from(x * 0.1);
                let x = f64::from(*x);
                [
                    tenth.sin(),
                    tenth.cos(),
                    tenth.exp(),
                    (x.abs() + 2.0).log2(),
                    x / 3.0,
                    tenth.tanh(),
                    1.0 / (x.abs() + 1.0),
                ]
                .map(|y| y as f32)
            };
            a.set(1, a.f32s(0).iter().flat_map(seven).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "reduce_huge_angle",
        GRID,
        |r| {
            let near = Compare::Close { relative: 1e-6, absolute: 3e-7 };
            vec![exact(r.f32s(COUNT, -10.0, 10.0)), exact(vec![0f32; COUNT]).judged(near), value(N)]
        },
        |a| {
            let sine = |x: &f32| f64::from(x * 1e9f32).sin() as f32;
            a.set(1, a.f32s(0).iter().map(sine).collect::<Vec<f32>>());
        }
    ),
];
