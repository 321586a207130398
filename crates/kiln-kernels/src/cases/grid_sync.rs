//! Grid-wide synchronisation: blocks that wait for each other.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("grid");

pub(super) const CASES: &[Case] = &[case!(
    SOURCE,
    "grid_sum",
    CaseShape::linear(6, 128).cooperative(),
    |r| vec![exact(r.i32s(2000, -99, 99)), exact(vec![0i32; 6]), exact(vec![0i32; 6]), value(2000u32)],
    |a| {
        let sum: i32 = a.i32s(0).iter().sum();
        a.set(1, (0..6).map(|b| sum + b).collect::<Vec<i32>>());
        a.set(2, (0..6).map(|b| sum + (b + 1) % 6).collect::<Vec<i32>>());
    }
)];
