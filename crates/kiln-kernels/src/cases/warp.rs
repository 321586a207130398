//! Warp-level operations and divergence.

use crate::argument::exact;
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("warp");

fn votes(w: &[i32]) -> Vec<u32> {
    let mask =
        |f: &dyn Fn(&i32) -> bool| w.iter().zip(0..).fold(0u32, |m, (x, at)| m | u32::from(f(x)) << at);
    let flags = u32::from(w.iter().all(|x| *x > -1000)) | u32::from(w.iter().any(|x| *x > 900)) << 1;
    let equal = w.iter().all(|x| x >> 30 == w[0] >> 30);
    let lane = |v: &i32| {
        let same = mask(&|x: &i32| x & 7 == v & 7);
        [flags | u32::from(equal) << 2, mask(&|x| x & 1 != 0), same, if equal { u32::MAX } else { 0 }]
    };
    w.iter().flat_map(lane).collect()
}

/// `list` holds a whole block; lanes read from their own warp.
fn shuffles(list: &[i32]) -> Vec<i32> {
    let six = |i: usize| {
        let (lane, warp) = (i % 32, i / 32 * 32);
        let at = |from: usize| list[warp + from];
        let up = |by: usize, width: usize| if lane % width >= by { lane - by } else { lane };
        let down = |by: usize, width: usize| if lane % width + by < width { lane + by } else { lane };
        [at(i * 7 % 32), at(up(3, 32)), at(down(5, 16)), at(lane ^ 9), at(lane / 8 * 8 + 2), at(up(1, 4))]
    };
    (0..list.len()).flat_map(six).collect()
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "votes",
        CaseShape::linear(2, 96),
        |r| {
            let mut list = r.i32s(192, -1100, 1000);
            list[..32].iter_mut().for_each(|x| *x = x.abs());
            vec![exact(list), exact(vec![0u32; 4 * 192])]
        },
        |a| a.set(1, a.i32s(0).chunks(32).flat_map(votes).collect::<Vec<u32>>())
    ),
    case!(
        SOURCE,
        "shuffles",
        CaseShape::linear(2, 64),
        |r| vec![exact(r.i32s(128, -999, 999)), exact(vec![0i32; 6 * 128])],
        |a| a.set(1, shuffles(&a.i32s(0)))
    ),
    case!(
        SOURCE,
        "split_shuffles",
        CaseShape::linear(1, 64),
        |r| vec![exact(r.i32s(64, -999, 999)), exact(vec![0i32; 64])],
        |a| {
            let x = a.i32s(0);
            let first: Vec<i32> =
                (0..64).map(|i| if i % 32 < 16 { (x[i] + x[i ^ 1]) * 3 } else { x[i] - x[i ^ 2] }).collect();
            a.set(1, (0..64).map(|i| first[i] + first[i ^ 31]).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "warp_barrier",
        CaseShape::linear(1, 128),
        |r| vec![exact(r.i32s(128, -999, 999)), exact(vec![0i32; 128])],
        |a| {
            let x = a.i32s(0);
            let shifted = |i: usize| if i % 2 == 1 { x[i] + 100 } else { x[i] - 100 };
            a.set(1, (0..128).map(|i| shifted(i ^ 3) * 2 + 1).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "spin_lock",
        CaseShape::linear(2, 64),
        |_| vec![exact(vec![0i32]), exact(vec![0i32]), exact(vec![0i32; 128]).judged(Compare::Sorted)],
        |a| {
            a.set(1, vec![128i32]);
            a.set(2, (0..128).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "spin_lock_plain",
        CaseShape::linear(2, 8),
        |_| vec![exact(vec![0i32]), exact(vec![0i32])],
        |a| a.set(1, vec![16i32])
    ),
    case!(
        SOURCE,
        "special_registers",
        CaseShape::cubic([2, 3, 1], [24, 4, 1]).shared(640),
        |_| vec![exact(vec![0u32; 4 * 576])],
        |a| {
            let four = |i: u32| {
                let lane = i % 96 % 32;
                [lane | 640 << 16, 1 << lane, 1 << lane, (1u32 << lane) + 2]
            };
            a.set(0, (0..576).flat_map(four).collect::<Vec<u32>>());
        }
    ),
];
