//! Warp-level operations in the interpreter.

use crate::evaluate::{self, Mode};
use crate::operation::{BinaryOp, WarpOp};
use crate::scalar_type::Type;

/// The operand of one lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brought {
    pub(super) a: u64,
    pub(super) by: u64,
}

/// The result of each lane. There is one operand for each existing lane.
pub(super) fn combine(op: WarpOp, ty: Type, lanes: &[Brought], mode: Mode) -> Vec<u64> {
    let count = lanes.len() as u64;
    let shuffled = |from: &dyn Fn(u64, u64) -> Option<u64>| {
        let source = |(lane, own): (u64, &Brought)| {
            let from = from(lane, own.by).filter(|from| *from < count);
            from.and_then(|from| lanes.get(from as usize)).map_or(own.a, |other| other.a)
        };
        (0..).zip(lanes).map(source).collect()
    };
    let same = |value: u64| vec![value; lanes.len()];
    match op {
        WarpOp::Ballot => same((0..).zip(lanes).fold(0, |bits, (lane, own)| bits | own.a << lane)),
        WarpOp::Any => same(u64::from(lanes.iter().any(|own| own.a != 0))),
        WarpOp::All => same(u64::from(lanes.iter().all(|own| own.a != 0))),
        WarpOp::Shuffle => shuffled(&|_, by| Some(by)),
        WarpOp::ShuffleUp => shuffled(&|lane, by| lane.checked_sub(by)),
        WarpOp::ShuffleDown => shuffled(&|lane, by| Some(lane + by)),
        WarpOp::ShuffleXor => shuffled(&|lane, by| Some(lane ^ by)),
        WarpOp::Add => same(tree(BinaryOp::Add, ty, lanes, mode)),
        WarpOp::Min => same(tree(BinaryOp::Min, ty, lanes, mode)),
        WarpOp::Max => same(tree(BinaryOp::Max, ty, lanes, mode)),
        WarpOp::And => same(tree(BinaryOp::And, ty, lanes, mode)),
        WarpOp::Or => same(tree(BinaryOp::Or, ty, lanes, mode)),
        WarpOp::Xor => same(tree(BinaryOp::Xor, ty, lanes, mode)),
    }
}

/// Every lane takes that of the lane 16 above, then 8, 4, 2, 1, where there is one; what lane 0 has is the answer.
fn tree(op: BinaryOp, ty: Type, lanes: &[Brought], mode: Mode) -> u64 {
    let mut values: Vec<u64> = lanes.iter().map(|own| own.a).collect();
    for distance in [16, 8, 4, 2, 1] {
        for lane in 0..distance {
            if let (Some(own), Some(other)) =
                (values.get(lane).copied(), values.get(lane + distance).copied())
            {
                values[lane] = evaluate::binary(op, ty, own, other, mode);
            }
        }
    }
    values.first().copied().unwrap_or(0)
}
