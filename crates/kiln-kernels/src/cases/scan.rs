//! Prefix sums.

use crate::argument::exact;
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("scan");

fn running<T: Copy>(list: &[T], zero: T, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sum = zero;
    let step = |x: &T| {
        sum = add(sum, *x);
        sum
    };
    list.iter().map(step).collect()
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "scan_hillis_steele",
        CaseShape::linear(3, 256),
        |r| vec![exact(r.i32s(768, -1000, 1000)), exact(vec![0i32; 768])],
        |a| {
            let x = a.i32s(0);
            a.set(1, x.chunks(256).flat_map(|b| running(b, 0, |s, x| s + x)).collect::<Vec<i32>>());
        }
    ),
    case!(
        SOURCE,
        "scan_blelloch",
        CaseShape::linear(2, 128).shared(256 * 4),
        |r| vec![exact(r.words(512)), exact(vec![0u32; 512])],
        |a| {
            let x = a.u32s(0);
            let exclusive = |b: &[u32]| {
                let sums = running(b, 0, u32::wrapping_add);
                std::iter::once(0).chain(sums).take(b.len()).collect::<Vec<u32>>()
            };
            a.set(1, x.chunks(256).flat_map(exclusive).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "scan_warp",
        CaseShape::linear(2, 128),
        |r| vec![exact(r.f32s(256, -1.0, 1.0)), exact(vec![0f32; 256])],
        |a| {
            let x = a.f32s(0);
            let warp = |w: &[f32]| {
                let mut v = w.to_vec();
                for k in [1, 2, 4, 8, 16] {
                    let before = v.clone();
                    (k..v.len()).for_each(|lane| v[lane] = before[lane] + before[lane - k]);
                }
                v
            };
            a.set(1, x.chunks(32).flat_map(warp).collect::<Vec<f32>>());
        }
    ),
    case!(
        SOURCE,
        "scan_look_back",
        CaseShape::linear(9, 128),
        |r| vec![
            exact(r.u32s(1152, 100)),
            exact(vec![0u32; 1152]),
            exact(vec![0u32; 9]),
            exact(vec![0u32; 9])
        ],
        |a| {
            let sums = running(&a.u32s(0), 0, |s, x| s + x);
            a.set(2, sums.iter().skip(127).step_by(128).copied().collect::<Vec<u32>>());
            a.set(1, sums);
            a.set(3, vec![1u32; 9]);
        }
    ),
];
