//! Histograms with atomics.

use crate::argument::{exact, value};
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("histogram");

fn counted(bins: usize, places: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut counts = vec![0; bins];
    places.for_each(|place| counts[place] += 1);
    counts
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "histogram_shared",
        CaseShape::linear(3, 256),
        |r| vec![exact(r.bytes(5000)), exact(vec![0u32; 256]), value(5000u32)],
        |a| {
            let x = a.u8s(0);
            a.set(1, counted(256, x.iter().map(|x| usize::from(*x))));
        }
    ),
    case!(
        SOURCE,
        "histogram_global",
        CaseShape::linear(16, 128),
        |r| vec![exact(r.f32s(2000, -0.2, 1.2)), exact(vec![0u32; 50]), value(50u32), value(2000u32)],
        |a| {
            let x = a.f32s(0);
            // Conversion to int cuts toward zero, so a little below zero is bin 0.
            let places = x.iter().map(|x| (x * 50.0) as i32).filter(|bin| (0..50).contains(bin));
            a.set(1, counted(50, places.map(|bin| bin as usize)));
        }
    ),
    case!(
        SOURCE,
        "histogram_match",
        CaseShape::linear(8, 128),
        |r| vec![exact(r.words(1000)), exact(vec![0u32; 16]), value(1000u32)],
        |a| {
            let x = a.u32s(0);
            a.set(1, counted(16, x.iter().map(|x| (x % 16) as usize)));
        }
    ),
];
