//! Device functions: templates, recursion, pointers, virtual calls.

use crate::argument::{CaseArgument, exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("function");

fn fibonacci(n: u32) -> i32 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn ackermann(m: u32, n: u32) -> u32 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

/// `struct Triple` as C lays it out.
#[derive(Clone, Copy)]
struct Triple {
    x: i32,
    y: f64,
    z: [i16; 3],
}

const START: Triple = Triple { x: 12, y: 3.25, z: [7, -8, 90] };

fn triple_argument(t: Triple) -> CaseArgument {
    let mut bytes = t.x.to_le_bytes().to_vec();
    bytes.resize(8, 0);
    bytes.extend(t.y.to_le_bytes());
    t.z.iter().for_each(|z| bytes.extend(z.to_le_bytes()));
    bytes.resize(24, 0);
    CaseArgument::Value { bytes, align: 8 }
}

fn twist(t: Triple, by: i32) -> Triple {
    Triple {
        x: i32::from(t.z[(by % 3) as usize]) + by,
        y: f64::from(t.x).mul_add(0.5, t.y),
        z: [t.y as i32 as i16, t.z[0], t.z[1]],
    }
}

fn twisted(thread: i32) -> f64 {
    let t = (0..=thread % 7).fold(START, |t, k| twist(t, k + thread));
    let [a, b, c] = t.z.map(f64::from);
    f64::from(t.x) + t.y + a * 3.0 + b * 5.0 + c * 7.0
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "fold_sum_i32",
        "_Z9fold_rowsIi3SumEvPKT_PS1_j",
        CaseShape::linear(2, 32),
        |r| vec![exact(r.i32s(64 * 9, -1000, 1000)), exact(vec![0i32; 64]), value(9u32)],
        |a| a.set(1, a.i32s(0).chunks(9).map(|row| row.iter().sum()).collect::<Vec<i32>>())
    ),
    case!(
        SOURCE,
        "fold_largest_f64",
        "_Z9fold_rowsId7LargestEvPKT_PS1_j",
        CaseShape::linear(2, 32),
        |r| vec![exact(r.f64s(64 * 9, -1.0, 1.0)), exact(vec![0f64; 64]), value(9u32)],
        |a| {
            let most = |row: &[f64]| row.iter().copied().fold(f64::MIN, f64::max);
            a.set(1, a.f64s(0).chunks(9).map(most).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "fold_largest_u8",
        "_Z9fold_rowsIh7LargestEvPKT_PS1_j",
        CaseShape::linear(2, 32),
        |r| vec![exact(r.bytes(64 * 9)), exact(vec![0u8; 64]), value(9u32)],
        |a| {
            let most = |row: &[u8]| row.iter().copied().max().unwrap_or(0);
            a.set(1, a.u8s(0).chunks(9).map(most).collect::<Vec<u8>>());
        }
    ),
    case!(SOURCE, "fibonacci_all", CaseShape::linear(1, 64), |_| vec![exact(vec![0i32; 64])], |a| a
        .set(0, (0..64).map(|t| fibonacci(t % 12)).collect::<Vec<i32>>())),
    case!(SOURCE, "ackermann_all", CaseShape::linear(1, 32), |_| vec![exact(vec![0u32; 32])], |a| a
        .set(0, (0..32).map(|t| ackermann(t % 3, t % 5)).collect::<Vec<u32>>())),
    case!(
        SOURCE,
        "quicksort_rows",
        CaseShape::linear(1, 48),
        |r| vec![exact(r.i32s(48 * 25, -99, 99)), value(25i32)],
        |a| {
            let sort = |row: &[i32]| {
                let mut row = row.to_vec();
                row.sort_unstable();
                row
            };
            a.set(0, a.i32s(0).chunks(25).flat_map(sort).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "pass_struct",
        CaseShape::linear(1, 40),
        |_| vec![triple_argument(START), exact(vec![0f64; 40])],
        |a| a.set(1, (0..40).map(twisted).collect::<Vec<f64>>())
    ),
    case!(
        SOURCE,
        "call_table",
        CaseShape::linear(1, 96),
        |r| vec![exact(r.i32s(96, -1000, 1000)), exact(r.i32s(96, 0, 2)), exact(vec![0i32; 96])],
        |a| {
            let (x, which) = (a.i32s(0), a.i32s(1));
            let step = |(n, which): (&i32, &i32)| match which {
                0 => n / 2,
                1 => 3 * n + 1,
                _ => n * n,
            };
            a.set(2, x.iter().zip(&which).map(step).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "virtual_areas",
        CaseShape::linear(1, 64),
        |r| vec![exact(r.f32s(64, 0.0, 10.0)), exact(vec![0f32; 64])],
        |a| {
            let area = |(t, v): (usize, f32)| if t % 2 == 1 { v * v } else { v * 3.0 };
            a.set(1, a.f32s(0).into_iter().enumerate().map(area).collect::<Vec<f32>>());
        }
    ),
];
