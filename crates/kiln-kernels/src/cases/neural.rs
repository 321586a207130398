//! Building blocks of neural networks.

use crate::argument::{exact, value};
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("neural");
const NEAR: Compare = Compare::Close { relative: 5e-6, absolute: 2e-6 };

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "softmax",
        CaseShape::linear(4, 128),
        |r| vec![exact(r.f32s(16 * 70, -5.0, 5.0)), exact(vec![0f32; 16 * 70]).judged(NEAR), value(70u32)],
        |a| {
            let x = a.f32s(0);
            let row = |row: &[f32]| {
                let top = row.iter().copied().fold(f32::MIN, f32::max);
                let powers: Vec<f64> = row.iter().map(|x| f64::from(x - top).exp()).collect();
                let sum: f64 = powers.iter().sum();
                powers.into_iter().map(move |p| (p / sum) as f32).collect::<Vec<f32>>()
            };
            a.set(1, x.chunks(70).flat_map(row).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "layer_norm",
        CaseShape::linear(6, 128),
        |r| vec![
            exact(r.f32s(6 * 200, -2.0, 3.0)),
            exact(r.f32s(200, 0.5, 1.5)),
            exact(r.f32s(200, -0.5, 0.5)),
            exact(vec![0f32; 6 * 200]).judged(NEAR),
            value(200u32)
        ],
        |a| {
            let (x, gain, bias) = (a.f32s(0), a.f32s(1), a.f32s(2));
            let row = |row: &[f32]| {
                let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / 200.0;
                let squares = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 200.0;
                let scale = 1.0 / (squares - mean * mean + 1e-5).sqrt();
                let cell = |(c, x): (usize, &f32)| {
                    ((f64::from(*x) - mean) * scale * f64::from(gain[c]) + f64::from(bias[c])) as f32
                };
                row.iter().enumerate().map(cell).collect::<Vec<f32>>()
            };
            a.set(3, x.chunks(200).flat_map(row).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "gelu",
        CaseShape::linear(4, 256),
        |r| vec![exact(r.f32s(1000, -6.0, 6.0)), exact(vec![0f32; 1000]).judged(NEAR), value(1000u32)],
        |a| {
            let x = a.f32s(0);
            let gelu = |x: &f32| {
                let x = f64::from(*x);
                (0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x * x * x)).tanh())) as f32
            };
            a.set(1, x.iter().map(gelu).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "max_pool",
        CaseShape::cubic([2, 3, 1], [16, 8, 1]),
        |r| vec![exact(r.f32s(50 * 40, -1.0, 1.0)), exact(vec![0f32; 25 * 20]), value(50u32), value(40u32)],
        |a| {
            let x = a.f32s(0);
            let cell = |at: usize| {
                let corner = at / 25 * 100 + at % 25 * 2;
                [0, 1, 50, 51].map(|d| x[corner + d]).into_iter().fold(f32::MIN, f32::max)
            };
            a.set(1, (0..25 * 20).map(cell).collect::<Vec<f32>>());
        }
    ),
];
