//! Atomic updates: what is in memory afterwards.

use super::probe;
use crate::instruction_probe::{Class, Meaning, Probe};

const H: Class = Class::Half;
const W: Class = Class::Word;
const D: Class = Class::Double;

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for (space, at) in [("global", "%out"), ("shared", "%cell")] {
        let mut add = |op: &str, class: Class, meaning: Meaning| {
            let bits = match class {
                Class::Half => 16,
                Class::Word | Class::Truth => 32,
                Class::Double => 64,
            };
            let swap = if op.starts_with("cas") { ", $c" } else { "" };
            let text = format!(
                "st.{space}.b{bits} [{at}], $a; atom.{space}.{op} $d, [{at}], $b{swap}; ld.{space}.b{bits} $d, [{at}]"
            );
            all.push(probe(text, class, &[class; 3], meaning));
        };
        for ty in ["u32", "s32"] {
            for op in ["add", "min", "max"] {
                add(&format!("{op}.{ty}"), W, Meaning::Integer);
            }
        }
        for op in [
            "add.u64", "min.u64", "max.u64", "min.s64", "max.s64", "exch.b64", "cas.b64", "and.b64",
            "or.b64", "xor.b64",
        ] {
            add(op, D, Meaning::Integer);
        }
        for op in ["inc.u32", "dec.u32", "exch.b32", "cas.b32", "and.b32", "or.b32", "xor.b32"] {
            add(op, W, Meaning::Integer);
        }
        add("cas.b16", H, Meaning::Integer);
        add("add.f32", W, Meaning::Single);
        add("add.f64", D, Meaning::Double);
        add("add.noftz.f16", H, Meaning::Half);
        add("add.noftz.f16x2", W, Meaning::Half);
        add("add.noftz.bf16", H, Meaning::Brain);
        add("add.noftz.bf16x2", W, Meaning::Brain);
    }
    all
}
