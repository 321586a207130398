//! Conversions.

use super::probe;
use crate::instruction_probe::{Class, Meaning, Probe};

const H: Class = Class::Half;
const W: Class = Class::Word;
const D: Class = Class::Double;

const INTEGERS: [(&str, Class); 8] =
    [("u8", W), ("s8", W), ("u16", H), ("s16", H), ("u32", W), ("s32", W), ("u64", D), ("s64", D)];
const FLOATS: [(&str, Class, Meaning); 3] =
    [("f16", H, Meaning::Half), ("f32", W, Meaning::Single), ("f64", D, Meaning::Double)];

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for (from, from_class) in INTEGERS {
        for (to, to_class) in INTEGERS {
            all.push(probe(format!("cvt.{to}.{from} $d, $a"), to_class, &[from_class], Meaning::Integer));
            if may_overflow(from, to) {
                all.push(probe(
                    format!("cvt.sat.{to}.{from} $d, $a"),
                    to_class,
                    &[from_class],
                    Meaning::Integer,
                ));
            }
        }
        for (to, to_class, _) in FLOATS {
            for round in ["rn", "rz", "rm", "rp"] {
                let text = format!("cvt.{round}.{to}.{from} $d, $a");
                all.push(probe(text, to_class, &[from_class], Meaning::Integer));
            }
        }
    }
    for (from, from_class, meaning) in FLOATS {
        for (to, to_class) in INTEGERS {
            for round in ["rni", "rzi", "rmi", "rpi"] {
                all.push(probe(format!("cvt.{round}.{to}.{from} $d, $a"), to_class, &[from_class], meaning));
            }
        }
    }
    all.extend(between_floats());
    all
}

/// Whether an integer of one type may not fit another; only then PTX knows `.sat`.
fn may_overflow(from: &str, to: &str) -> bool {
    let bits = |ty: &str| ty[1..].parse::<u32>().unwrap_or(0);
    let signed = |ty: &str| ty.starts_with('s');
    match (signed(from), signed(to)) {
        (true, false) => true,
        (false, true) => bits(to) <= bits(from),
        _ => bits(to) < bits(from),
    }
}

fn between_floats() -> Vec<Probe> {
    let mut all = Vec::new();
    for round in ["rn", "rz", "rm", "rp"] {
        all.push(probe(format!("cvt.{round}.f32.f64 $d, $a"), W, &[D], Meaning::Double));
        all.push(probe(format!("cvt.{round}.ftz.f32.f64 $d, $a"), W, &[D], Meaning::Double));
        all.push(probe(format!("cvt.{round}.f16.f32 $d, $a"), H, &[W], Meaning::Single));
        all.push(probe(format!("cvt.{round}.f16.f64 $d, $a"), H, &[D], Meaning::Double));
        all.push(probe(format!("cvt.{round}i.f32.f32 $d, $a"), W, &[W], Meaning::Single));
        all.push(probe(format!("cvt.{round}i.ftz.f32.f32 $d, $a"), W, &[W], Meaning::Single));
        all.push(probe(format!("cvt.{round}i.f64.f64 $d, $a"), D, &[D], Meaning::Double));
        all.push(probe(format!("cvt.{round}i.f16.f16 $d, $a"), H, &[H], Meaning::Half));
    }
    let mut add = |text: &str, to: Class, from: &[Class], meaning: Meaning| {
        all.push(probe(
            format!("{text}{}", if from.len() == 2 { " $d, $a, $b" } else { " $d, $a" }),
            to,
            from,
            meaning,
        ));
    };
    add("cvt.f64.f32", D, &[W], Meaning::Single);
    add("cvt.ftz.f64.f32", D, &[W], Meaning::Single);
    add("cvt.f32.f16", W, &[H], Meaning::Half);
    add("cvt.f64.f16", D, &[H], Meaning::Half);
    add("cvt.f32.bf16", W, &[H], Meaning::Brain);
    add("cvt.sat.f32.f32", W, &[W], Meaning::Single);
    add("cvt.ftz.sat.f32.f32", W, &[W], Meaning::Single);
    add("cvt.rn.sat.f32.f64", W, &[D], Meaning::Double);
    add("cvt.rn.bf16.f32", H, &[W], Meaning::Single);
    add("cvt.rz.bf16.f32", H, &[W], Meaning::Single);
    add("cvt.rn.relu.bf16.f32", H, &[W], Meaning::Single);
    add("cvt.rn.relu.f16.f32", H, &[W], Meaning::Single);
    add("cvt.rn.f16x2.f32", W, &[W, W], Meaning::Single);
    add("cvt.rz.relu.f16x2.f32", W, &[W, W], Meaning::Single);
    add("cvt.rn.bf16x2.f32", W, &[W, W], Meaning::Single);
    add("cvt.rna.tf32.f32", W, &[W], Meaning::Single);
    add("cvt.rn.tf32.f32", W, &[W], Meaning::Single);
    add("cvt.rn.satfinite.e4m3x2.f32", H, &[W, W], Meaning::Single);
    add("cvt.rn.satfinite.e5m2x2.f32", H, &[W, W], Meaning::Single);
    add("cvt.rn.satfinite.relu.e4m3x2.f32", H, &[W, W], Meaning::Single);
    add("cvt.rn.satfinite.e4m3x2.f16x2", H, &[W], Meaning::Half);
    add("cvt.rn.satfinite.e5m2x2.f16x2", H, &[W], Meaning::Half);
    add("cvt.rn.f16x2.e4m3x2", W, &[H], Meaning::Integer);
    add("cvt.rn.f16x2.e5m2x2", W, &[H], Meaning::Integer);
    add("cvt.pack.sat.s16.s32", W, &[W, W], Meaning::Integer);
    add("cvt.pack.sat.u16.s32", W, &[W, W], Meaning::Integer);
    all.push(probe("cvt.pack.sat.u8.s32.b32 $d, $a, $b, $c", W, &[W, W, W], Meaning::Integer));
    all.push(probe("cvt.pack.sat.s8.s32.b32 $d, $a, $b, $c", W, &[W, W, W], Meaning::Integer));
    all
}
