//! Video instructions: one operation on selected parts of registers, and the same on two half words or four bytes.

use super::probe;
use crate::instruction_probe::{Class, Meaning, Probe};

const W: Class = Class::Word;

/// Types of the result, of `a` and of `b`.
const TYPES: [[&str; 3]; 4] =
    [["u32", "u32", "u32"], ["s32", "s32", "s32"], ["s32", "u32", "s32"], ["u32", "s32", "u32"]];
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

pub(super) fn probes() -> Vec<Probe> {
    [scalar(), shifted(), multiplied(), compared(), packed()]
        .concat()
        .into_iter()
        .map(|text| probe(text, W, &[W; 3], Meaning::Integer))
        .collect()
}

/// One operation on a part of each operand, merged into `c` or combined with it.
fn scalar() -> Vec<String> {
    let mut all = Vec::new();
    for name in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
        for [to, of_a, of_b] in TYPES {
            for sat in ["", ".sat"] {
                let head = format!("{name}.{to}.{of_a}.{of_b}{sat}");
                all.push(format!("{head} $d, $a, $b"));
                all.push(format!("{head} $d, $a.h1, $b.b2"));
                all.push(format!("{head} $d.h1, $a.h0, $b.h1, $c"));
                all.push(format!("{head} $d.b2, $a.b3, $b, $c"));
                for second in ["add", "min", "max"] {
                    all.push(format!("{head}.{second} $d, $a.b1, $b.h0, $c"));
                }
            }
        }
    }
    all
}

fn shifted() -> Vec<String> {
    let mut all = Vec::new();
    for name in ["vshl", "vshr"] {
        for [to, of_a, _] in TYPES {
            for mode in ["clamp", "wrap"] {
                for sat in ["", ".sat"] {
                    let head = format!("{name}.{to}.{of_a}.u32{sat}.{mode}");
                    all.push(format!("{head} $d, $a, $b"));
                    all.push(format!("{head} $d.b1, $a.h1, $b.b0, $c"));
                    all.push(format!("{head}.add $d, $a.h0, $b.b0, $c"));
                }
            }
        }
    }
    all
}

fn multiplied() -> Vec<String> {
    let mut all = Vec::new();
    for [to, of_a, of_b] in TYPES {
        for sat in ["", ".sat"] {
            for scale in ["", ".shr7", ".shr15"] {
                let head = format!("vmad.{to}.{of_a}.{of_b}");
                all.push(format!("{head}{sat}{scale} $d, $a.h0, $b.h1, $c"));
                all.push(format!("{head}{sat}{scale} $d, $a.b0, $b.h0, -$c"));
                all.push(format!("{head}{sat}{scale} $d, -$a.h1, $b.b3, $c"));
                all.push(format!("{head}.po{sat}{scale} $d, $a.h0, $b.h0, $c"));
            }
        }
    }
    all
}

fn compared() -> Vec<String> {
    let mut all = Vec::new();
    for name in COMPARISONS {
        for [of_a, of_b] in [["u32", "u32"], ["s32", "s32"], ["u32", "s32"]] {
            let tail = format!("{of_a}.{of_b}.{name}");
            all.push(format!("vset.{tail} $d, $a.b0, $b.h1"));
            all.push(format!("vset.{tail} $d.b2, $a.b0, $b.h1, $c"));
            all.push(format!("vset.{tail}.max $d, $a.b0, $b.h1, $c"));
            all.push(format!("vset2.{tail} $d.h1, $a, $b, $c"));
            all.push(format!("vset2.{tail}.add $d, $a, $b, $c"));
            all.push(format!("vset4.{tail} $d.b20, $a, $b, $c"));
            all.push(format!("vset4.{tail}.add $d.b31, $a, $b, $c"));
        }
    }
    all
}

fn packed() -> Vec<String> {
    let mut all = Vec::new();
    for name in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"] {
        for [to, of_a, of_b] in TYPES {
            for sat in ["", ".sat"] {
                let (two, four) =
                    (format!("{name}2.{to}.{of_a}.{of_b}{sat}"), format!("{name}4.{to}.{of_a}.{of_b}{sat}"));
                all.push(format!("{two} $d, $a, $b, $c"));
                all.push(format!("{two} $d.h1, $a.h30, $b.h21, $c"));
                all.push(format!("{four} $d, $a, $b, $c"));
                all.push(format!("{four} $d.b20, $a.b0123, $b.b4567, $c"));
            }
            all.push(format!("{name}2.{to}.{of_a}.{of_b}.add $d, $a, $b, $c"));
            all.push(format!("{name}4.{to}.{of_a}.{of_b}.add $d.b310, $a, $b, $c"));
        }
    }
    all
}
