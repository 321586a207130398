//! Address spaces.

use crate::argument::{CaseArgument, exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("memory");

/// `struct Big` as C lays it out.
fn big(a: [i32; 10], d: f64, c: i8) -> CaseArgument {
    let mut bytes: Vec<u8> = a.iter().flat_map(|x| x.to_le_bytes()).collect();
    bytes.extend(d.to_le_bytes());
    bytes.push(c as u8);
    bytes.resize(56, 0);
    CaseArgument::Value { bytes, align: 8 }
}

fn local_table(v: i32) -> i32 {
    let mut a = [0i32; 64];
    (0..64).for_each(|k| a[((k * 5 + v) & 63) as usize] = k);
    (0..64).step_by(1 + (v & 3) as usize).fold(0i32, |sum, k| sum.wrapping_mul(31).wrapping_add(a[k]))
}

fn atomics(a: &mut crate::CaseArguments) {
    let x = a.i32s(0);
    let mut cells = a.i32s(1);
    let (mut wide, mut s) = (a.u64s(2), [0i32; 4]);
    for (t, v) in x.iter().copied().enumerate() {
        cells[0] += v;
        cells[1] -= v;
        cells[2] = cells[2].min(v);
        cells[3] = cells[3].max(v);
        cells[4] &= v | 0xff00;
        cells[5] |= v & 0x00ff;
        cells[6] ^= v;
        cells[7] = if cells[7] as u32 >= 17 { 0 } else { cells[7] + 1 };
        cells[8] = if cells[8] == 0 || cells[8] as u32 > 11 { 11 } else { cells[8] - 1 };
        cells[9] = (cells[9] as u32).min(v as u32) as i32;
        wide[0] = wide[0].wrapping_add((v as i64 as u64).wrapping_mul(1_000_003));
        wide[1] = wide[1].max(u64::from(v as u32) << 20);
        wide[2] ^= 1 << (t & 63);
        s = [s[0] + v, s[1].max(v), s[2] | 1 << (t & 31), s[3] + 1];
    }
    cells[10..].copy_from_slice(&s);
    // Quarters and whole numbers sum without rounding, in any order.
    let quarters: f32 = x.iter().map(|v| 0.25 * (v & 15) as f32).sum();
    let whole: f64 = x.iter().map(|v| f64::from(*v)).sum();
    a.set(1, cells);
    a.set(2, wide);
    a.set(3, vec![quarters]);
    a.set(4, vec![whole]);
}

pub(super) const CASES: &[Case] = &[
    case!(SOURCE, "module_variables", CaseShape::linear(1, 64), |_| vec![exact(vec![0i32; 64])], |a| {
        let step = [1, -2, 3, -4];
        // The counter starts odd and grows by two.
        a.set(0, (0..64).map(|i| (i % 4 + 1) * 10 + step[i as usize % 4] + 30 + 1).collect::<Vec<i32>>());
    }),
    case!(
        SOURCE,
        "generic_pointers",
        CaseShape::linear(1, 32),
        |r| vec![exact(r.i32s(32, -99, 99)), exact(vec![0i32; 32])],
        |a| {
            let x = a.i32s(0);
            let cell = |t: usize| {
                let v = match t % 3 {
                    0 => x[31 - t],
                    1 => x[31 - t] + 1,
                    _ => (31 - t as i32) * x[t],
                };
                v * 2 + 1
            };
            a.set(1, (0..32).map(cell).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "struct_argument",
        CaseShape::linear(1, 40),
        |_| vec![big([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], 123.75, -7), value(200u8), exact(vec![0i32; 40])],
        |a| {
            let digits = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3];
            a.set(2, (0..40).map(|t| digits[t % 10] + 123 - 7 + 200).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "dynamic_shared",
        CaseShape::linear(1, 96).shared(96 * 10),
        |r| vec![exact(r.list(96, |r| r.within(-999, 999) as i16)), exact(vec![0i16; 96]), value(96u32)],
        |a| {
            let x = a.i16s(0);
            let cell = |t: usize| x[95 - t] + (f64::from(x[(t + 1) % 96]) * 0.5) as i16;
            a.set(1, (0..96).map(cell).collect::<Vec<i16>>());
        }
    ),
    case!(
        SOURCE,
        "local_table",
        CaseShape::linear(1, 64),
        |r| vec![exact(r.i32s(64, 0, 500)), exact(vec![0i32; 64])],
        |a| a.set(1, a.i32s(0).iter().map(|v| local_table(*v)).collect::<Vec<i32>>())
    ),
    case!(
        SOURCE,
        "heap_list",
        CaseShape::linear(1, 64),
        |r| vec![exact(r.i32s(64, -99, 99)), exact(vec![0i32; 64]), value(6i32)],
        |a| {
            // The list is walked from its last node.
            let sum = |v: &i32| (0..6).rev().fold(0, |sum, k| sum * 3 + v + k);
            a.set(1, a.i32s(0).iter().map(sum).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "async_copy",
        CaseShape::linear(1, 64),
        |r| vec![exact(r.i32s(256, -999, 999)), exact(vec![0i32; 512])],
        |a| {
            let x = a.i32s(0);
            let quad = |t: usize| [x[4 * t], x[4 * t + 1], x[4 * t + 2], x[4 * t + 3]];
            let reversed = (0..64).flat_map(|t| quad(63 - t));
            let again = (0..64).flat_map(|t| {
                let [first, rest @ ..] = quad(t);
                [if t % 2 == 1 { first } else { 0 }, rest[0], rest[1], rest[2]]
            });
            a.set(1, reversed.chain(again).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "atomics",
        CaseShape::linear(1, 96),
        |r| vec![
            exact(r.i32s(96, -9999, 9999)),
            exact([vec![5, 5, i32::MAX, i32::MIN, -1, 0, 0, 3, 4, -1], vec![0; 4]].concat()),
            exact(vec![0u64; 3]),
            exact(vec![0f32]),
            exact(vec![0f64])
        ],
        atomics
    ),
];
