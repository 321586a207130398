//! Dense matrices.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("matrix");

fn product(a: &[f32], b: &[f32], n: usize) -> Vec<f32> {
    let cell = |at: usize| (0..n).fold(0f32, |sum, k| a[at / n * n + k].mul_add(b[k * n + at % n], sum));
    (0..n * n).map(cell).collect()
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "matmul_naive",
        CaseShape::cubic([3, 3, 1], [16, 16, 1]),
        |r| vec![
            exact(r.f32s(40 * 40, -1.0, 1.0)),
            exact(r.f32s(40 * 40, -1.0, 1.0)),
            exact(vec![0f32; 40 * 40]),
            value(40u32)
        ],
        |a| a.set(2, product(&a.f32s(0), &a.f32s(1), 40))
    ),
    case!(
        SOURCE,
        "matmul_tiled",
        CaseShape::cubic([3, 3, 1], [16, 16, 1]),
        |r| vec![
            exact(r.f32s(48 * 48, -1.0, 1.0)),
            exact(r.f32s(48 * 48, -1.0, 1.0)),
            exact(vec![0f32; 48 * 48]),
            value(48u32)
        ],
        |a| a.set(2, product(&a.f32s(0), &a.f32s(1), 48))
    ),
    case!(
        SOURCE,
        "matmul_f64",
        CaseShape::cubic([4, 4, 1], [8, 8, 1]),
        |r| vec![
            exact(r.f64s(32 * 32, -1.0, 1.0)),
            exact(r.f64s(32 * 32, -1.0, 1.0)),
            exact(vec![0f64; 32 * 32]),
            value(32u32)
        ],
        |a| {
            let (x, y) = (a.f64s(0), a.f64s(1));
            let cell = |at: usize| {
                (0..32).fold(0f64, |sum, k| x[at / 32 * 32 + k].mul_add(y[k * 32 + at % 32], sum))
            };
            a.set(2, (0..32 * 32).map(cell).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "transpose",
        CaseShape::cubic([3, 2, 1], [32, 8, 1]),
        |r| vec![exact(r.f32s(70 * 50, -1.0, 1.0)), exact(vec![0f32; 70 * 50]), value(70u32), value(50u32)],
        |a| {
            let x = a.f32s(0);
            a.set(1, (0..70 * 50).map(|at| x[at % 50 * 70 + at / 50]).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "matvec_warp",
        CaseShape::linear(5, 128),
        |r| vec![
            exact(r.f32s(18 * 75, -1.0, 1.0)),
            exact(r.f32s(75, -1.0, 1.0)),
            exact(vec![0f32; 18]),
            value(18u32),
            value(75u32)
        ],
        |a| {
            let (m, v) = (a.f32s(0), a.f32s(1));
            let row = |row: &[f32]| {
                let lane =
                    |lane: usize| (lane..75).step_by(32).fold(0f32, |sum, c| row[c].mul_add(v[c], sum));
                let mut lanes: Vec<f32> = (0..32).map(lane).collect();
                for k in [16, 8, 4, 2, 1] {
                    lanes = (0..32).map(|lane| lanes[lane] + lanes[lane ^ k]).collect();
                }
                lanes[0]
            };
            a.set(2, m.chunks(75).map(row).collect::<Vec<f32>>());
        }
    ),
];
