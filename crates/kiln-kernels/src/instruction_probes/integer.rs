//! Integers and bits.

use super::{names, probe};
use crate::instruction_probe::{Class, Meaning, Probe};

const W: Class = Class::Word;
const D: Class = Class::Double;

fn class(ty: &str) -> Class {
    match &ty[1..] {
        "16" => Class::Half,
        "64" => Class::Double,
        _ => Class::Word,
    }
}

/// `op.ty` with operands of the same type.
fn same(op: &str, ty: &str, count: usize) -> Probe {
    let class = class(ty);
    probe(format!("{op}.{ty} $d, {}", names(count)), class, &vec![class; count], Meaning::Integer)
}

pub(super) fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    let types = ["u16", "s16", "u32", "s32", "u64", "s64"];
    for ty in types {
        for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
            all.push(same(op, ty, 2));
        }
        all.push(same("mad.lo", ty, 3));
        all.push(same("sad", ty, 3));
    }
    for ty in ["u32", "s32", "u64", "s64"] {
        all.push(same("mad.hi", ty, 3));
    }
    for ty in ["s16", "s32", "s64"] {
        all.push(same("abs", ty, 1));
        all.push(same("neg", ty, 1));
    }
    for (ty, wide, class) in [("u16", W, Class::Half), ("s16", W, Class::Half), ("u32", D, W), ("s32", D, W)]
    {
        all.push(probe(format!("mul.wide.{ty} $d, $a, $b"), wide, &[class, class], Meaning::Integer));
        all.push(probe(
            format!("mad.wide.{ty} $d, $a, $b, $c"),
            wide,
            &[class, class, wide],
            Meaning::Integer,
        ));
    }
    for op in ["mul24.lo.u32", "mul24.hi.u32", "mul24.lo.s32", "mul24.hi.s32"] {
        all.push(probe(format!("{op} $d, $a, $b"), W, &[W, W], Meaning::Integer));
    }
    for op in ["mad24.lo.u32", "mad24.hi.s32", "mad24.hi.sat.s32", "mad.hi.sat.s32"] {
        all.push(probe(format!("{op} $d, $a, $b, $c"), W, &[W, W, W], Meaning::Integer));
    }
    for op in [
        "add.sat.s32",
        "sub.sat.s32",
        "min.relu.s32",
        "max.relu.s32",
        "add.u16x2",
        "min.s16x2",
        "max.u16x2",
        "max.relu.s16x2",
    ] {
        all.push(probe(format!("{op} $d, $a, $b"), W, &[W, W], Meaning::Integer));
    }
    for op in [
        "vadd4",
        "vsub4",
        "vavrg4",
        "vabsdiff4",
        "vmin4",
        "vmax4",
        "vadd2",
        "vsub2",
        "vavrg2",
        "vabsdiff2",
        "vmin2",
        "vmax2",
    ] {
        for tail in ["u32.u32.u32", "s32.s32.s32", "u32.s32.u32", "s32.u32.s32.sat", "u32.u32.u32.add"] {
            all.push(probe(format!("{op}.{tail} $d, $a, $b, $c"), W, &[W, W, W], Meaning::Integer));
        }
    }
    all.extend(bits());
    all.extend(carries());
    all
}

fn bits() -> Vec<Probe> {
    let mut all = Vec::new();
    for width in ["b16", "b32", "b64"] {
        let c = class(width);
        for op in ["and", "or", "xor"] {
            all.push(same(op, width, 2));
        }
        all.push(same("not", width, 1));
        all.push(same("cnot", width, 1));
        all.push(probe(format!("shl.{width} $d, $a, $b"), c, &[c, W], Meaning::Integer));
        for sign in ["u", "s"] {
            let ty = format!("{sign}{}", &width[1..]);
            all.push(probe(format!("shr.{ty} $d, $a, $b"), c, &[c, W], Meaning::Integer));
        }
    }
    for width in ["b32", "b64"] {
        let c = class(width);
        for op in ["popc", "clz"] {
            all.push(probe(format!("{op}.{width} $d, $a"), W, &[c], Meaning::Integer));
        }
        all.push(same("brev", width, 1));
        all.push(probe(format!("bfi.{width} $d, $a, $b, $c, 7"), c, &[c, c, W], Meaning::Integer));
        all.push(probe(format!("bfi.{width} $d, $a, $b, 20, $c"), c, &[c, c, W], Meaning::Integer));
    }
    for ty in ["u32", "s32", "u64", "s64"] {
        let c = class(ty);
        all.push(probe(format!("bfind.{ty} $d, $a"), W, &[c], Meaning::Integer));
        all.push(probe(format!("bfind.shiftamt.{ty} $d, $a"), W, &[c], Meaning::Integer));
        all.push(probe(format!("bfe.{ty} $d, $a, $b, $c"), c, &[c, W, W], Meaning::Integer));
    }
    for op in [
        "shf.l.wrap.b32",
        "shf.l.clamp.b32",
        "shf.r.wrap.b32",
        "shf.r.clamp.b32",
        "dp4a.s32.u32",
        "dp2a.lo.u32.s32",
        "dp2a.hi.s32.s32",
    ] {
        all.push(probe(format!("{op} $d, $a, $b, $c"), W, &[W, W, W], Meaning::Integer));
    }
    let nth = "and.b32 $b, $b, 31; shr.s32 $c, $c, 28; fns.b32 $d, $a, $b, $c";
    all.push(probe(nth, W, &[W, W, W], Meaning::Integer));
    for table in ["0xca", "0x96", "0x1e", "0x00"] {
        all.push(probe(format!("lop3.b32 $d, $a, $b, $c, {table}"), W, &[W, W, W], Meaning::Integer));
    }
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        all.push(probe(format!("prmt.b32{mode} $d, $a, $b, $c"), W, &[W, W, W], Meaning::Integer));
    }
    for op in ["bmsk.clamp.b32", "bmsk.wrap.b32", "szext.clamp.s32", "szext.wrap.u32"] {
        all.push(probe(format!("{op} $d, $a, $b"), W, &[W, W], Meaning::Integer));
    }
    all
}

/// Chains through the carry flag: what one instruction leaves the next one takes.
fn carries() -> Vec<Probe> {
    let mut all = Vec::new();
    for (width, c) in [("32", W), ("64", D)] {
        let chain =
            |first: &str, second: &str| format!("{first}.u{width} $d, $a, $b; {second}.u{width} $d, $d, $c");
        for (first, second) in
            [("add.cc", "addc"), ("sub.cc", "subc"), ("add.cc", "subc"), ("sub.cc", "addc")]
        {
            all.push(probe(chain(first, second), c, &[c, c, c], Meaning::Integer));
        }
        let text = format!("mad.lo.cc.u{width} $d, $a, $b, $c; madc.hi.u{width} $d, $a, $b, $d");
        all.push(probe(text, c, &[c, c, c], Meaning::Integer));
        let text = format!("mad.hi.cc.s{width} $d, $a, $b, $c; madc.lo.s{width} $d, $a, $b, $d");
        all.push(probe(text, c, &[c, c, c], Meaning::Integer));
    }
    all
}
