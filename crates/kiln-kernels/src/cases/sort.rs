//! Sorting.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("sort");

fn sorted<T: PartialOrd + Copy>(list: &[T], row: usize) -> Vec<T> {
    let sort = |part: &[T]| {
        let mut part = part.to_vec();
        part.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        part
    };
    list.chunks(row).flat_map(sort).collect()
}

pub(super) const CASES: &[Case] = &[
    case!(SOURCE, "bitonic_sort", CaseShape::linear(2, 256), |r| vec![exact(r.i32s(1024, -500, 500))], |a| a
        .set(0, sorted(&a.i32s(0), 512))),
    case!(SOURCE, "radix_sort", CaseShape::linear(2, 256), |r| vec![exact(r.words(512))], |a| a
        .set(0, sorted(&a.u32s(0), 256))),
    case!(
        SOURCE,
        "insertion_sort",
        CaseShape::linear(2, 48),
        |r| vec![exact(r.f32s(96 * 13, -1.0, 1.0)), exact(vec![0f32; 96 * 13]), value(13u32)],
        |a| a.set(1, sorted(&a.f32s(0), 13))
    ),
];
