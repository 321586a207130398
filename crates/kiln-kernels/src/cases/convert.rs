//! Conversions between numbers.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::seeded_inputs::Random;
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("convert");
const COUNT: usize = 400;
const N: u32 = COUNT as u32;
const GRID: CaseShape = CaseShape::linear(7, 64);

/// Floats around the limits of integers, with halves among them, and NaN.
fn near_integers(r: &mut Random) -> Vec<f64> {
    r.list(COUNT, |r| match r.within(0, 5) {
        0 => r.within(-20, 20) as f64 / 2.0,
        1 => [
            2147483647.0,
            -2147483648.0,
            4294967295.0,
            9.3e18,
            -9.3e18,
            1.9e19,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ][r.within(0, 7) as usize],
        2 => r.float(-3e9, 5e9),
        3 => r.float(-1e19, 2e19),
        _ => r.float(-100.0, 100.0),
    })
}

fn integers(r: &mut Random) -> Vec<i64> {
    r.list(COUNT, |r| (r.next() as i64) >> r.within(0, 60))
}

/// The next float in a direction where the nearest one overshoots the exact integer.
fn directed(x: i128, nearest: f32, up: bool) -> f32 {
    let wide = f64::from(nearest) as i128;
    match (wide.cmp(&x), up) {
        (std::cmp::Ordering::Less, true) => nearest.next_up(),
        (std::cmp::Ordering::Greater, false) => nearest.next_down(),
        _ => nearest,
    }
}

fn toward_zero(x: i128, nearest: f32) -> f32 {
    directed(x, nearest, x < 0)
}

fn directed_double(x: i128, nearest: f64, up: bool) -> f64 {
    match ((nearest as i128).cmp(&x), up) {
        (std::cmp::Ordering::Less, true) => nearest.next_up(),
        (std::cmp::Ordering::Greater, false) => nearest.next_down(),
        _ => nearest,
    }
}

fn narrowed(x: f64) -> [f32; 4] {
    let nearest = x as f32;
    let wide = f64::from(nearest);
    let (down, up) = match wide.partial_cmp(&x) {
        Some(std::cmp::Ordering::Less) => (nearest, nearest.next_up()),
        Some(std::cmp::Ordering::Greater) => (nearest.next_down(), nearest),
        _ => (nearest, nearest),
    };
    [nearest, if x < 0.0 { up } else { down }, down, up]
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "float_to_integer",
        GRID,
        |r| {
            let list = near_integers(r).into_iter().map(|x| x as f32).collect::<Vec<f32>>();
            vec![exact(list), exact(vec![0i32; 8 * COUNT]), value(N)]
        },
        |a| {
            let eight = |x: &f32| {
                let all = [x.round_ties_even(), x.trunc(), x.floor(), x.ceil()];
                [all.map(|x| x as i32), all.map(|x| x as u32 as i32)].concat()
            };
            a.set(1, a.f32s(0).iter().flat_map(eight).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "double_to_integer",
        GRID,
        |r| vec![exact(near_integers(r)), exact(vec![0i64; 8 * COUNT]), value(N)],
        |a| {
            let eight = |x: &f64| {
                let [near, zero, down, up] = [x.round_ties_even(), x.trunc(), x.floor(), x.ceil()];
                [
                    near as i64,
                    zero as i64,
                    down as i64,
                    up as i64,
                    near as u64 as i64,
                    zero as u64 as i64,
                    i64::from(near as i32),
                    i64::from(zero as u32),
                ]
            };
            a.set(1, a.f64s(0).iter().flat_map(eight).collect::<Vec<i64>>());
        }
    ),
    case!(
        SOURCE,
        "integer_to_float",
        GRID,
        |r| vec![exact(integers(r)), exact(vec![0f32; 8 * COUNT]), value(N)],
        |a| {
            let eight = |x: &i64| {
                let (v, wide) = (*x, i128::from(*x));
                let unsigned = i128::from(v as u64);
                [
                    v as f32,
                    toward_zero(wide, v as f32),
                    directed(wide, v as f32, false),
                    directed(wide, v as f32, true),
                    v as i32 as f32,
                    toward_zero(i128::from(v as u32), v as u32 as f32),
                    directed(unsigned, v as u64 as f32, true),
                    f32::from(v as i16),
                ]
            };
            a.set(1, a.i64s(0).iter().flat_map(eight).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "integer_to_double",
        GRID,
        |r| vec![exact(integers(r)), exact(vec![0f64; 6 * COUNT]), value(N)],
        |a| {
            let six = |x: &i64| {
                let v = *x;
                [
                    v as f64,
                    directed_double(i128::from(v), v as f64, false),
                    directed_double(i128::from(v as u64), v as u64 as f64, true),
                    f64::from(v as i32),
                    f64::from(v as u32),
                    f64::from(v as i8),
                ]
            };
            a.set(1, a.i64s(0).iter().flat_map(six).collect::<Vec<f64>>());
        }
    ),
    case!(
        SOURCE,
        "float_whole",
        GRID,
        |r| {
            let list = near_integers(r).into_iter().map(|x| x as f32).collect::<Vec<f32>>();
            vec![exact(list), exact(vec![0f32; 6 * COUNT]), value(N)]
        },
        |a| {
            let six = |x: &f32| {
                let clamped = if *x > 0.0 { x.min(1.0) } else { 0.0 };
                [x.floor(), x.ceil(), x.trunc(), x.round_ties_even(), x.round(), clamped]
            };
            a.set(1, a.f32s(0).iter().flat_map(six).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "narrow",
        GRID,
        |r| vec![exact(r.f64s(COUNT, -1e3, 1e3)), exact(vec![0f32; 4 * COUNT]), value(N)],
        |a| a.set(1, a.f64s(0).into_iter().flat_map(narrowed).collect::<Vec<f32>>())
    ),
    case!(
        SOURCE,
        "integer_widths",
        GRID,
        |r| vec![exact(integers(r)), exact(vec![0i64; 8 * COUNT]), value(N)],
        |a| {
            let eight = |x: &i64| {
                let v = *x;
                // tf32 keeps ten bits of the fraction, ties away from zero.
                let tf32 = ((v as f32).to_bits() + 0x1000) & !0x1fff;
                [
                    i64::from(v as i8),
                    i64::from(v as u8),
                    i64::from(v as i16),
                    i64::from(v as u16),
                    i64::from(v as i32),
                    i64::from(v as u32),
                    i64::from((v as i32).clamp(0, 255)),
                    i64::from(tf32 as i32),
                ]
            };
            a.set(1, a.i64s(0).iter().flat_map(eight).collect::<Vec<i64>>());
        }
    ),
];
