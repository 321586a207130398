//! One output element per thread.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("elementwise");
const COUNT: usize = 1000;
const N: u32 = COUNT as u32;
const GRID: CaseShape = CaseShape::linear(4, 256);

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "saxpy",
        GRID,
        |r| vec![
            value(2.5f32),
            exact(r.f32s(COUNT, -10.0, 10.0)),
            exact(r.f32s(COUNT, -10.0, 10.0)),
            value(N)
        ],
        |a| {
            let (s, x, y) = (a.float(0), a.f32s(1), a.f32s(2));
            a.set(2, x.iter().zip(&y).map(|(x, y)| s.mul_add(*x, *y)).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "add_i32",
        GRID,
        |r| vec![
            exact(r.i32s(COUNT, i32::MIN, i32::MAX)),
            exact(r.i32s(COUNT, i32::MIN, i32::MAX)),
            exact(vec![0i32; COUNT]),
            value(N)
        ],
        |a| {
            let (x, y) = (a.i32s(0), a.i32s(1));
            a.set(2, x.iter().zip(&y).map(|(x, y)| x.wrapping_add(*y)).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "scale_grid_stride",
        CaseShape::linear(2, 64),
        |r| vec![exact(r.f32s(COUNT, -1e20, 1e20)), value(3.75f32), value(N)],
        |a| {
            let (x, s) = (a.f32s(0), a.float(1));
            a.set(0, x.iter().map(|x| x * s).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "relu_f64",
        GRID,
        |r| vec![exact(r.f64s(COUNT, -1.0, 1.0)), exact(vec![0.0f64; COUNT]), value(N)],
        |a| {
            let x = a.f64s(0);
            a.set(1, x.iter().map(|x| if *x > 0.0 { *x } else { 0.0 }).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "clamp_i16",
        GRID,
        |r| vec![exact(r.list(COUNT, |r| r.next() as i16)), value(-500i16), value(12_000i16), value(N)],
        |a| {
            let x = a.i16s(0);
            a.set(0, x.iter().map(|x| (*x).clamp(-500, 12_000)).collect::<Vec<i16>>());
        }
    ),
    case!(SOURCE, "invert_pixels", GRID, |r| vec![exact(r.bytes(4 * COUNT)), value(N)], |a| {
        let x = a.u8s(0);
        let invert = |(at, x): (usize, &u8)| if at % 4 == 3 { *x } else { 255 - x };
        a.set(0, x.iter().enumerate().map(invert).collect::<Vec<u8>>());
    }),
    case!(
        SOURCE,
        "complex_multiply",
        GRID,
        |r| vec![
            exact(r.f32s(2 * COUNT, -5.0, 5.0)),
            exact(r.f32s(2 * COUNT, -5.0, 5.0)),
            exact(vec![0f32; 2 * COUNT]),
            value(N)
        ],
        |a| {
            let (x, y) = (a.f32s(0), a.f32s(1));
            let product = |(x, y): (&[f32], &[f32])| [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]];
            a.set(2, x.chunks(2).zip(y.chunks(2)).flat_map(product).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "copy_float4",
        GRID,
        |r| vec![exact(r.f32s(4 * COUNT, -1.0, 1.0)), exact(vec![0f32; 4 * COUNT]), value(N)],
        |a| {
            let x = a.f32s(0);
            a.set(1, x.chunks(4).flat_map(|v| v.iter().rev().copied()).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "divide_i64",
        GRID,
        |r| {
            let divisor = |r: &mut crate::Random| match r.within(-40, 1 << 40) {
                0 => 1,
                divisor => divisor,
            };
            vec![
                exact(r.list(COUNT, |r| r.next() as i64)),
                exact(r.list(COUNT, divisor)),
                exact(vec![0i64; COUNT]),
                exact(vec![0i64; COUNT]),
                value(N),
            ]
        },
        |a| {
            let (x, y) = (a.i64s(0), a.i64s(1));
            a.set(2, x.iter().zip(&y).map(|(x, y)| x.wrapping_div(*y)).collect::<Vec<i64>>());
            a.set(3, x.iter().zip(&y).map(|(x, y)| x.wrapping_rem(*y)).collect::<Vec<i64>>());
        }
    ),
    case!(
        SOURCE,
        "divide_u32",
        GRID,
        |r| vec![
            exact(r.words(COUNT)),
            exact(r.list(COUNT, |r| r.within(1, 70_000) as u32)),
            exact(vec![0u32; COUNT]),
            exact(vec![0u32; COUNT]),
            value(N)
        ],
        |a| {
            let (x, y) = (a.u32s(0), a.u32s(1));
            a.set(2, x.iter().zip(&y).map(|(x, y)| x / y).collect::<Vec<u32>>());
            a.set(3, x.iter().map(|x| x % 10 + x / 7).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "gather",
        GRID,
        |r| vec![exact(r.i32s(COUNT, -99, 99)), exact(r.u32s(COUNT, N)), exact(vec![0i32; COUNT]), value(N)],
        |a| {
            let (from, index) = (a.i32s(0), a.u32s(1));
            a.set(2, index.iter().map(|at| from[*at as usize]).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "bytes_widen",
        GRID,
        |r| vec![
            exact(r.list(COUNT, |r| r.next() as i8)),
            exact(r.bytes(COUNT)),
            exact(vec![0i32; COUNT]),
            value(N)
        ],
        |a| {
            let (x, y) = (a.i8s(0), a.u8s(1));
            let sum = |(x, y): (&i8, &u8)| i32::from(*x) * 1000 + i32::from(*y);
            a.set(2, x.iter().zip(&y).map(sum).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "index_3d",
        CaseShape::cubic([3, 2, 4], [8, 4, 2]),
        |_| vec![exact(vec![0u32; 20 * 7 * 8]), value(20u32), value(7u32), value(8u32)],
        |a| {
            let cells =
                (0..8u32).flat_map(|z| (0..7u32).flat_map(move |y| (0..20u32).map(move |x| (x, y, z))));
            let word = |(x, y, z): (u32, u32, u32)| x | y << 8 | z << 16 | (x / 8 + y / 4) << 24;
            a.set(0, cells.map(word).collect::<Vec<u32>>());
        }
    ),
];
