//! Video instructions give what the formulas of the PTX ISA give.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Operands `a`, `b`, `c`: limits of bytes, half words and words against each other.
fn inputs() -> Vec<[u32; 3]> {
    let odd = [
        0,
        1,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x0102_0304,
        0xfedc_ba98,
        0x8001_7ffe,
        0x00ff_ff00,
        33,
    ];
    let triple = |at: usize| [odd[at % 16], odd[(at / 16 + at * 5) % 16], odd[(at * 11 + at / 7) % 16]];
    (0..256).map(triple).collect()
}

/// Runs `instruction` with `%d`, `%a`, `%b`, `%c` for every input.
fn run(instruction: &str) -> Result<Vec<u32>, String> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{{\n.reg .b32 %a, %b, %c, %d, %t;\n.reg .b64 %in, %out, %at;\n\
         ld.param.u64 %in, [from];\nld.param.u64 %out, [to];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, 12;\nadd.u64 %in, %in, %at;\nmul.wide.u32 %at, %t, 4;\nadd.u64 %out, %out, %at;\n\
         ld.global.u32 %a, [%in];\nld.global.u32 %b, [%in+4];\nld.global.u32 %c, [%in+8];\n{instruction}\nst.global.u32 [%out], %d;\nret;\n}}\n"
    );
    let module = PtxModule::parse(&text).map_err(|error| error.to_string())?;
    let mut memory = SimpleMemory::new();
    let bytes: Vec<u8> = inputs().iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let (from, to) = (memory.allocate_with(&bytes), memory.allocate(4 * 256));
    let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let options = Options { checks: Checks::ALL, ..Options::default() };
    // Reading and printing give the same module.
    assert_eq!(PtxModule::parse(&module.to_string()).unwrap().to_string(), module.to_string());
    let entry = ExecProgram::new(module).entry("k").unwrap();
    let outcome = entry.launch(&LaunchShape::linear(1, 256), &arguments, &[], &memory, &options).unwrap();
    match outcome.findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => {
            let words = memory.read(to, 4 * 256).unwrap();
            Ok(words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
        }
    }
}

fn expect(instruction: &str, formula: impl Fn(u32, u32, u32) -> u32) {
    let results = run(instruction).unwrap_or_else(|error| panic!("{instruction}: {error}"));
    for ([a, b, c], result) in inputs().into_iter().zip(results) {
        assert_eq!(result, formula(a, b, c), "{instruction} of {a:#x}, {b:#x}, {c:#x}");
    }
}

/// `partSelectSignExtend` of the PTX ISA.
fn part(x: u32, selector: &str, ty: &str) -> i64 {
    let signed = ty == "s32";
    let place: u32 = selector.get(1..).map_or(0, |digits| digits.parse().unwrap_or(0));
    match (selector.get(..1), signed) {
        (Some("b"), true) => i64::from((x >> (8 * place)) as i8),
        (Some("b"), false) => i64::from((x >> (8 * place)) as u8),
        (Some("h"), true) => i64::from((x >> (16 * place)) as i16),
        (Some("h"), false) => i64::from((x >> (16 * place)) as u16),
        (_, true) => i64::from(x as i32),
        (_, false) => i64::from(x),
    }
}

/// `optSaturate` of the PTX ISA.
fn saturate(x: i64, selector: &str, ty: &str) -> i64 {
    let (least, most) = match (selector.get(..1), ty) {
        (Some("b"), "s32") => (-0x80, 0x7f),
        (Some("b"), _) => (0, 0xff),
        (Some("h"), "s32") => (-0x8000, 0x7fff),
        (Some("h"), _) => (0, 0xffff),
        (_, "s32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (0, i64::from(u32::MAX)),
    };
    x.clamp(least, most)
}

/// `optMerge` of the PTX ISA.
fn merge(x: i64, selector: &str, c: u32) -> u32 {
    let x = x as u32;
    match selector {
        "h0" => (x & 0xffff) | (c & 0xffff_0000),
        "h1" => (x & 0xffff) << 16 | (c & 0xffff),
        "b0" => (x & 0xff) | (c & 0xffff_ff00),
        "b1" => (x & 0xff) << 8 | (c & 0xffff_00ff),
        "b2" => (x & 0xff) << 16 | (c & 0xff00_ffff),
        "b3" => (x & 0xff) << 24 | (c & 0x00ff_ffff),
        _ => x,
    }
}

fn dotted(word: &str) -> String {
    if word.is_empty() { String::new() } else { format!(".{word}") }
}

fn operation(name: &str, a: i64, b: i64) -> i64 {
    match name {
        "vadd" => a + b,
        "vsub" => a - b,
        "vabsdiff" => (a - b).abs(),
        "vmin" => a.min(b),
        _ => a.max(b),
    }
}

const TYPES: [[&str; 3]; 5] = [
    ["u32", "u32", "u32"],
    ["s32", "s32", "s32"],
    ["s32", "u32", "s32"],
    ["u32", "s32", "u32"],
    ["s32", "s32", "u32"],
];
const SELECTORS: [[&str; 2]; 5] = [["", ""], ["h0", "h1"], ["b0", "b3"], ["b1", ""], ["h1", "b2"]];

#[test]
fn one_operation_on_a_part_of_each_operand() {
    for name in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
        for [to, of_a, of_b] in TYPES {
            for [a_part, b_part] in SELECTORS {
                for sat in ["", "sat"] {
                    let result = |a, b, into: &str| {
                        let result = operation(name, part(a, a_part, of_a), part(b, b_part, of_b));
                        if sat.is_empty() { result } else { saturate(result, into, to) }
                    };
                    let head = format!("{name}.{to}.{of_a}.{of_b}{}", dotted(sat));
                    let from = format!("%a{}, %b{}", dotted(a_part), dotted(b_part));
                    expect(&format!("{head} %d, {from};"), |a, b, _| result(a, b, "") as u32);
                    for into in ["h0", "h1", "b0", "b2", "b3"] {
                        let merged = |a, b, c| merge(result(a, b, into), into, c);
                        expect(&format!("{head} %d.{into}, {from}, %c;"), merged);
                    }
                    expect(&format!("{head}.add %d, {from}, %c;"), |a, b, c| {
                        (result(a, b, "") as u32).wrapping_add(c)
                    });
                    for (second, greater) in [("min", false), ("max", true)] {
                        expect(&format!("{head}.{second} %d, {from}, %c;"), |a, b, c| {
                            let (x, is_signed) = (result(a, b, "") as u32, to == "s32");
                            let less = if is_signed { (x as i32) < c as i32 } else { x < c };
                            if less == greater { c } else { x }
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn shifts_clamp_or_wrap_their_distance() {
    for [to, of_a, _] in TYPES {
        for (mode, most) in [("clamp", 32), ("wrap", 31)] {
            for part_of_b in ["", "b0"] {
                let distance = |b: u32| match part(b, part_of_b, "u32") {
                    distance if most == 32 => distance.min(32),
                    distance => distance & 31,
                };
                let from = format!("%a.h1, %b{}", dotted(part_of_b));
                expect(&format!("vshl.{to}.{of_a}.u32.{mode} %d, {from};"), |a, b, _| {
                    (i128::from(part(a, "h1", of_a)) << distance(b)) as u32
                });
                expect(&format!("vshl.{to}.{of_a}.u32.sat.{mode} %d.b1, {from}, %c;"), |a, b, c| {
                    merge(saturate(part(a, "h1", of_a) << distance(b), "b1", to), "b1", c)
                });
                expect(&format!("vshr.{to}.{of_a}.u32.{mode}.add %d, {from}, %c;"), |a, b, c| {
                    ((part(a, "h1", of_a) >> distance(b)) as u32).wrapping_add(c)
                });
            }
        }
    }
    assert!(run("vshl.u32.u32.u32 %d, %a, %b;").unwrap_err().contains("with these operands"));
}

#[test]
fn a_product_is_negated_rounded_up_and_shifted() {
    let forms = [
        ("", "%a.h0, %b.h1, %c", 0),
        ("", "-%a.h0, %b.h1, %c", 1),
        ("", "%a.h0, -%b.h1, %c", 1),
        ("", "%a.h0, %b.h1, -%c", 2),
        (".po", "%a.h0, %b.h1, %c", 3),
        ("", "-%a.h0, -%b.h1, %c", 0),
    ];
    for [to, of_a, of_b] in TYPES {
        for (plus_one, from, kind) in forms {
            for (scale, shift) in [("", 0), (".shr7", 7), (".shr15", 15)] {
                for sat in ["", ".sat"] {
                    let text = format!("vmad.{to}.{of_a}.{of_b}{plus_one}{sat}{scale} %d, {from};");
                    expect(&text, |a, b, c| {
                        let is_signed = of_a == "s32" || of_b == "s32" || kind == 1 || kind == 2;
                        let product = i128::from(part(a, "h0", of_a)) * i128::from(part(b, "h1", of_b));
                        let (product, c, one) = match kind {
                            1 => (!product, c, 1),
                            2 => (product, !c, 1),
                            3 => (product, c, 1),
                            _ => (product, c, 0),
                        };
                        let c = if is_signed { i128::from(c as i32) } else { i128::from(c) };
                        let result = (product + c + one) >> shift;
                        match (sat, is_signed) {
                            ("", _) => result as u32,
                            (_, true) => result.clamp(-0x8000_0000, 0x7fff_ffff) as u32,
                            _ => result.clamp(0, 0xffff_ffff) as u32,
                        }
                    });
                }
            }
        }
    }
    expect("vmad.s32.s32.s32.shr15 %d, %a, -5, 16384;", |a, _, _| {
        ((i64::from(a as i32) * -5 + 16384) >> 15) as u32
    });
    for wrong in ["vmad.s32.s32.s32 %d, -%a, %b, -%c;", "vmad.s32.s32.s32.po %d, -%a, %b, %c;"] {
        assert!(run(wrong).unwrap_err().contains("with these operands"), "{wrong}");
    }
}

/// A name and what it holds for.
type Comparison = (&'static str, fn(i64, i64) -> bool);

const COMPARISONS: [Comparison; 6] = [
    ("eq", |a, b| a == b),
    ("ne", |a, b| a != b),
    ("lt", |a, b| a < b),
    ("le", |a, b| a <= b),
    ("gt", |a, b| a > b),
    ("ge", |a, b| a >= b),
];

#[test]
fn comparisons_give_one_or_zero() {
    for (name, holds) in COMPARISONS {
        for [of_a, of_b] in [["u32", "u32"], ["s32", "s32"], ["u32", "s32"]] {
            let result = |a, b| i64::from(holds(part(a, "b0", of_a), part(b, "h1", of_b)));
            let head = format!("vset.{of_a}.{of_b}.{name}");
            expect(&format!("{head} %d, %a.b0, %b.h1;"), |a, b, _| result(a, b) as u32);
            expect(&format!("{head} %d.b2, %a.b0, %b.h1, %c;"), |a, b, c| merge(result(a, b), "b2", c));
            expect(&format!("{head}.max %d, %a.b0, %b.h1, %c;"), |a, b, c| (result(a, b) as u32).max(c));
            let each = |bits: u32, mask: u32, a: u32, b: u32, c: u32, sum: bool| {
                let (name, mut packed, mut total) = (if bits == 8 { "b" } else { "h" }, 0, c);
                for place in 0..32 / bits {
                    let selector = format!("{name}{place}");
                    let result = u32::from(holds(part(a, &selector, of_a), part(b, &selector, of_b)));
                    let ones = (u32::MAX >> (32 - bits)) << (place * bits);
                    let is_kept = mask & ones != 0;
                    packed |= if is_kept { result << (place * bits) } else { c & ones };
                    total = total.wrapping_add(if is_kept { result } else { 0 });
                }
                if sum { total } else { packed }
            };
            let head = format!("{of_a}.{of_b}.{name}");
            expect(&format!("vset4.{head} %d, %a, %b, %c;"), |a, b, c| each(8, u32::MAX, a, b, c, false));
            expect(&format!("vset4.{head} %d.b20, %a, %b, %c;"), |a, b, c| {
                each(8, 0x00ff_00ff, a, b, c, false)
            });
            expect(&format!("vset4.{head}.add %d.b31, %a, %b, %c;"), |a, b, c| {
                each(8, 0xff00_ff00, a, b, c, true)
            });
            expect(&format!("vset2.{head}.add %d, %a, %b, %c;"), |a, b, c| each(16, u32::MAX, a, b, c, true));
            expect(&format!("vset2.{head} %d.h1, %a, %b, %c;"), |a, b, c| {
                each(16, 0xffff_0000, a, b, c, false)
            });
        }
    }
}

#[test]
fn lists_of_parts_pick_from_both_operands() {
    // Half word 3 of the pair is the upper one of `b`, half word 0 the lower one of `a`.
    expect("vadd2.u32.u32.u32 %d, %a.h30, %b.h21, %c;", |a, b, _| {
        let low = (a & 0xffff).wrapping_add(a >> 16) & 0xffff;
        let high = (b >> 16).wrapping_add(b & 0xffff) & 0xffff;
        low | high << 16
    });
    expect("vabsdiff4.u32.u32.u32 %d.b20, %a.b0123, %b.b4567, %c;", |a, b, c| {
        let (a, b) = (a.swap_bytes().to_le_bytes(), b.swap_bytes().to_le_bytes());
        let bytes: [u8; 4] = std::array::from_fn(|at| a[at].abs_diff(b[at]));
        (u32::from_le_bytes(bytes) & 0x00ff_00ff) | (c & 0xff00_ff00)
    });
    expect("vadd4.s32.s32.s32.add %d.b1, %a, %b, %c;", |a, b, c| {
        let sum = i32::from((a >> 8) as i8) + i32::from((b >> 8) as i8);
        c.wrapping_add(sum as u32)
    });
    for wrong in [
        "vadd2.u32.u32.u32 %d, %a.h0, %b, %c;",
        "vadd2.u32.u32.u32 %d.b10, %a, %b, %c;",
        "vadd4.u32.u32.u32 %d, %a.h10, %b, %c;",
        "vadd.u32.u32.u32 %d, %a.h10, %b;",
        "vadd.u32.u32.u32 %d.h0, %a, %b;",
        "vadd.u32.u32.u64 %d, %a, %b;",
    ] {
        assert!(run(wrong).unwrap_err().contains("with these operands"), "{wrong}");
    }
    assert!(run("vadd.u32.u32.u32 %d, %a.h7, %b;").unwrap_err().contains("%a.h7"));
    assert!(run("add.u32 %d, %a.h0, %b;").unwrap_err().contains("%a.h0"));
}

#[test]
fn what_is_merged_into_keeps_its_undefined_bytes() {
    // Four bytes are put one by one into a register that was never assigned.
    let build = |last: &str| {
        format!(
            "vadd.u32.u32.u32 %d.b0, %a.b0, 0, %d;\nvadd.u32.u32.u32 %d.b1, %a.b1, 0, %d;\nvadd.u32.u32.u32 %d.b2, %a.b2, 0, %d;\n{last}\n\
             setp.ne.u32 %p, %d, %a;\n@%p trap;\n"
        )
    };
    let run = |code: &str| run(&format!(".reg .pred %p;\n{code}"));
    assert_eq!(
        run(&build("vadd.u32.u32.u32 %d.b3, %a.b3, 0, %d;")),
        Ok(inputs().iter().map(|input| input[0]).collect())
    );
    assert!(run(&build("")).unwrap_err().contains("%d"));
}
