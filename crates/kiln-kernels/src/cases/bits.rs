//! Bit operations.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("bits");
const COUNT: usize = 300;
const N: u32 = COUNT as u32;
const GRID: CaseShape = CaseShape::linear(5, 64);

/// Single bits of a 32-bit word with copies of the sign above it.
fn bit(x: u32, at: u32, signed: bool) -> u32 {
    match (at < 32, signed) {
        (true, _) => x >> at & 1,
        (false, true) => x >> 31,
        (false, false) => 0,
    }
}

fn extract(x: u32, start: u32, len: u32, signed: bool) -> u32 {
    if len == 0 {
        return 0;
    }
    let top = bit(x, (start + len - 1).min(31), signed);
    let place = |at: u32| match at < len {
        true => bit(x, start + at, signed),
        false => u32::from(signed) * top,
    };
    (0..32).fold(0, |word, at| word | place(at) << at)
}

fn insert(x: u32, into: u32, start: u32, len: u32) -> u32 {
    let inside = |at: u32| at >= start && at < start + len;
    (0..32).fold(0, |word, at| word | if inside(at) { x >> (at - start) & 1 } else { into >> at & 1 } << at)
}

fn lookup(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..32).fold(0, |word, at| {
        let index = (a >> at & 1) << 2 | (b >> at & 1) << 1 | (c >> at & 1);
        word | (table >> index & 1) << at
    })
}

fn permute(x: u32, y: u32, selection: u32) -> u32 {
    let bytes = [x.to_le_bytes(), y.to_le_bytes()].concat();
    let pick = |at: usize| {
        let nibble = (selection >> (4 * at) & 15) as usize;
        let byte = bytes[nibble & 7];
        if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    };
    u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
}

fn nth_bit(x: u32, base: u32, count: i32) -> u32 {
    let upward: Vec<u32> = (base..32).filter(|at| x >> at & 1 != 0).collect();
    let downward: Vec<u32> = (0..=base).rev().filter(|at| x >> at & 1 != 0).collect();
    let found = match count {
        0 => upward.first().filter(|at| **at == base),
        1.. => upward.get(count as usize - 1),
        _ => downward.get(count.unsigned_abs() as usize - 1),
    };
    found.copied().unwrap_or(u32::MAX)
}

fn fields(x: u32, y: u32) -> [u32; 12] {
    let (start, len) = (y & 0x3f, y >> 8 & 0x3f);
    let wide = u64::from(y) << 32 | u64::from(x);
    let shift = y & 0x3f;
    let (from, count) = (y & 31, y >> 5 & 31);
    let low = y & 31;
    [
        extract(x, start, len, false),
        extract(x, start, len, true),
        insert(x, y, start, len),
        lookup(x, y, x.wrapping_add(y), 0x6a),
        permute(x, y, y),
        ((wide << (y >> 3 & 31)) >> 32) as u32,
        (wide >> (y >> 5 & 0x3f).min(32)) as u32,
        x.checked_shl(shift).unwrap_or(0),
        ((x as i32) >> shift.min(31)) as u32,
        nth_bit(x, y & 31, (y >> 28) as i32 - 8),
        (0..count).fold(0, |mask, at| mask | 1u32.checked_shl(from + at).unwrap_or(0)),
        if low == 0 { 0 } else { (((x << (32 - low)) as i32) >> (32 - low)) as u32 },
    ]
}

fn products(x: i32, y: i32) -> [i32; 12] {
    let (ux, uy) = (x as u32, y as u32);
    let low24 = |x: i32| i64::from(x << 8 >> 8);
    let signed_dot: i32 = x
        .to_le_bytes()
        .iter()
        .zip(y.to_le_bytes())
        .map(|(a, b)| i32::from(*a as i8) * i32::from(b as i8))
        .sum();
    let dot: u32 =
        x.to_le_bytes().iter().zip(y.to_le_bytes()).map(|(a, b)| u32::from(*a) * u32::from(b)).sum();
    let word = |at: u32| i32::from((x >> (16 * at)) as i16);
    let byte = |at: u32| i32::from((y >> (8 * at)) as i8);
    [
        ((i64::from(x) * i64::from(y)) >> 32) as i32,
        ((u64::from(ux) * u64::from(uy)) >> 32) as i32,
        (low24(x) * low24(y)) as i32,
        (u64::from(ux & 0xff_ffff) * u64::from(uy & 0xff_ffff)) as i32,
        x.abs_diff(y).wrapping_add(7) as i32,
        ux.abs_diff(uy).wrapping_add(9) as i32,
        ((i64::from(x) + i64::from(y)) >> 1) as i32,
        ((i64::from(x) + i64::from(y) + 1) >> 1) as i32,
        signed_dot + 5,
        dot.wrapping_add(5) as i32,
        word(0) * byte(0) + word(1) * byte(1) + 3,
        x.saturating_add(y),
    ]
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "bit_counts",
        GRID,
        |r| vec![
            exact(r.list(COUNT, |r| r.next() >> r.within(0, 63) << r.within(0, 40))),
            exact(vec![0u32; 10 * COUNT]),
            value(N)
        ],
        |a| {
            let ten = |x: &u64| {
                let (v, w) = (*x, *x as u32);
                let first = |zeros: u32, width: u32| if zeros == width { 0 } else { zeros + 1 };
                let top = w.checked_ilog2().unwrap_or(u32::MAX);
                // The highest bit that differs from the sign, as a distance from the top.
                let folded = if (w as i32) < 0 { !w } else { w };
                let shift = folded.checked_ilog2().map_or(u32::MAX, |at| 31 - at);
                [
                    w.count_ones(),
                    v.count_ones(),
                    w.leading_zeros(),
                    v.leading_zeros(),
                    first(w.trailing_zeros(), 32),
                    first(v.trailing_zeros(), 64),
                    w.reverse_bits(),
                    (v.reverse_bits() >> 32) as u32,
                    top,
                    shift,
                ]
            };
            a.set(1, a.u64s(0).iter().flat_map(ten).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "bit_fields",
        GRID,
        |r| vec![exact(r.words(COUNT)), exact(r.words(COUNT)), exact(vec![0u32; 12 * COUNT]), value(N)],
        |a| {
            let (x, y) = (a.u32s(0), a.u32s(1));
            a.set(2, x.iter().zip(&y).flat_map(|(x, y)| fields(*x, *y)).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "integer_products",
        GRID,
        |r| vec![
            exact(r.list(COUNT, |r| r.next() as i32)),
            exact(r.list(COUNT, |r| r.next() as i32)),
            exact(vec![0i32; 12 * COUNT]),
            value(N)
        ],
        |a| {
            let (x, y) = (a.i32s(0), a.i32s(1));
            a.set(2, x.iter().zip(&y).flat_map(|(x, y)| products(*x, *y)).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "division_by_zero",
        GRID,
        |r| vec![
            exact(r.list(COUNT, |r| r.next() as i32)),
            exact(vec![0i32; COUNT]),
            exact(vec![0i32; 4 * COUNT]),
            exact(vec![0i64; 2 * COUNT]),
            value(N)
        ],
        |a| {
            let x = a.i32s(0);
            a.set(2, x.iter().flat_map(|_| [-1; 4]).collect::<Vec<i32>>());
            a.set(3, x.iter().flat_map(|_| [-1; 2]).collect::<Vec<i64>>());
        }
    ),
];
