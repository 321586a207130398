//! Floating-point arithmetic and comparison.

use super::{names, probe};
use crate::instruction_probe::{Class, Meaning, Probe};

const H: Class = Class::Half;
const W: Class = Class::Word;
const D: Class = Class::Double;

pub(super) fn probes() -> Vec<Probe> {
    [single(), double(), half(), approximate(), comparisons()].concat()
}

fn single() -> Vec<Probe> {
    let mut all = Vec::new();
    let mut add = |text: String, count: usize| {
        all.push(probe(format!("{text}.f32 $d, {}", names(count)), W, &vec![W; count], Meaning::Single));
    };
    for round in ["rn", "rz", "rm", "rp"] {
        for (op, count) in
            [("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2), ("rcp", 1), ("sqrt", 1)]
        {
            add(format!("{op}.{round}"), count);
            add(format!("{op}.{round}.ftz"), count);
        }
        for (op, count) in [("add", 2), ("mul", 2), ("fma", 3)] {
            add(format!("{op}.{round}.sat"), count);
            add(format!("{op}.{round}.ftz.sat"), count);
        }
    }
    for op in [
        "min",
        "max",
        "min.ftz",
        "max.ftz",
        "min.NaN",
        "max.NaN",
        "min.xorsign.abs",
        "max.ftz.NaN.xorsign.abs",
        "copysign",
    ] {
        add(op.to_owned(), 2);
    }
    for op in ["abs", "neg", "abs.ftz", "neg.ftz"] {
        add(op.to_owned(), 1);
    }
    all
}

fn double() -> Vec<Probe> {
    let mut all = Vec::new();
    let mut add = |text: String, count: usize| {
        all.push(probe(format!("{text}.f64 $d, {}", names(count)), D, &vec![D; count], Meaning::Double));
    };
    for round in ["rn", "rz", "rm", "rp"] {
        for (op, count) in
            [("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2), ("rcp", 1), ("sqrt", 1)]
        {
            add(format!("{op}.{round}"), count);
        }
    }
    for op in ["min", "max", "copysign"] {
        add(op.to_owned(), 2);
    }
    for op in ["abs", "neg"] {
        add(op.to_owned(), 1);
    }
    all
}

fn half() -> Vec<Probe> {
    let mut all = Vec::new();
    for (ty, class, meaning) in [
        ("f16", H, Meaning::Half),
        ("f16x2", W, Meaning::Half),
        ("bf16", H, Meaning::Brain),
        ("bf16x2", W, Meaning::Brain),
    ] {
        let mut add = |op: &str, count: usize| {
            all.push(probe(format!("{op}.{ty} $d, {}", names(count)), class, &vec![class; count], meaning));
        };
        for op in ["add", "sub", "mul", "add.rn"] {
            add(op, 2);
        }
        for op in ["fma.rn", "fma.rn.relu"] {
            add(op, 3);
        }
        for op in ["min", "max", "min.NaN", "max.NaN", "max.xorsign.abs"] {
            add(op, 2);
        }
        add("abs", 1);
        add("neg", 1);
        if meaning == Meaning::Half {
            for op in ["add.ftz", "mul.ftz.sat", "add.sat", "min.ftz"] {
                add(op, 2);
            }
            add("fma.rn.ftz.sat", 3);
            add("abs.ftz", 1);
        }
    }
    all
}

fn approximate() -> Vec<Probe> {
    let mut all = Vec::new();
    let mut add = |text: &str, count: usize, close: f64| {
        let operands = vec![W; count];
        let probe = probe(format!("{text}.f32 $d, {}", names(count)), W, &operands, Meaning::Single);
        all.push(Probe { close: Some(close), ..probe });
    };
    for ftz in ["", ".ftz"] {
        add(&format!("rcp.approx{ftz}"), 1, 2.4e-7);
        add(&format!("rsqrt.approx{ftz}"), 1, 4e-7);
        add(&format!("sqrt.approx{ftz}"), 1, 4e-7);
        add(&format!("ex2.approx{ftz}"), 1, 5e-7);
        add(&format!("div.full{ftz}"), 2, 4e-7);
        add(&format!("div.approx{ftz}"), 2, 4e-7);
    }
    add("tanh.approx", 1, 6e-4);
    for ftz in ["", ".ftz"] {
        // Near 1 the error is absolute.
        let probe = probe(format!("lg2.approx{ftz}.f32 $d, $a"), W, &[W], Meaning::Single);
        all.push(Probe { close: Some(5e-7), floor: 1.0, ..probe });
    }
    // The hardware computes the upper half of a double only, from the upper half of the operand.
    for op in ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"] {
        let probe = probe(format!("{op} $d, $a"), D, &[D], Meaning::Double);
        all.push(Probe { close: Some(2e-6), ..probe });
    }
    all
}

fn comparisons() -> Vec<Probe> {
    let mut all = Vec::new();
    let ordered = ["eq", "ne", "lt", "le", "gt", "ge"];
    let unordered = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];
    let mut add = |text: String, class: Class, meaning: Meaning| {
        all.push(probe(format!("{text} $d, $a, $b"), Class::Truth, &[class, class], meaning));
    };
    for compare in ordered.iter().chain(&unordered) {
        add(format!("setp.{compare}.f32"), W, Meaning::Single);
        add(format!("setp.{compare}.ftz.f32"), W, Meaning::Single);
        add(format!("setp.{compare}.f64"), D, Meaning::Double);
        add(format!("setp.{compare}.f16"), H, Meaning::Half);
        add(format!("setp.{compare}.bf16"), H, Meaning::Brain);
    }
    for compare in ordered {
        for (ty, class) in [("s16", H), ("u16", H), ("s32", W), ("u32", W), ("s64", D), ("u64", D)] {
            add(format!("setp.{compare}.{ty}"), class, Meaning::Integer);
        }
    }
    for compare in ["lo", "ls", "hi", "hs"] {
        add(format!("setp.{compare}.u32"), W, Meaning::Integer);
    }
    for question in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
        all.push(probe(format!("testp.{question}.f32 $d, $a"), Class::Truth, &[W], Meaning::Single));
        all.push(probe(format!("testp.{question}.f64 $d, $a"), Class::Truth, &[D], Meaning::Double));
    }
    for (ty, result) in [("u32", W), ("f32", W)] {
        all.push(probe(format!("set.lt.{ty}.f32 $d, $a, $b"), result, &[W, W], Meaning::Single));
        all.push(probe(format!("set.ge.{ty}.s32 $d, $a, $b"), result, &[W, W], Meaning::Integer));
        all.push(probe(format!("set.neu.{ty}.f64 $d, $a, $b"), result, &[D, D], Meaning::Double));
    }
    all.push(probe("set.lt.f16x2.f16x2 $d, $a, $b", W, &[W, W], Meaning::Half));
    all.push(probe("set.geu.bf16x2.bf16x2 $d, $a, $b", W, &[W, W], Meaning::Brain));
    all.push(probe("slct.b32.s32 $d, $a, $b, $c", W, &[W, W, W], Meaning::Integer));
    all.push(probe("slct.f32.f32 $d, $a, $b, $c", W, &[W, W, W], Meaning::Single));
    all.push(probe("slct.ftz.u64.f32 $d, $a, $b, $c", D, &[D, D, W], Meaning::Single));
    all
}
