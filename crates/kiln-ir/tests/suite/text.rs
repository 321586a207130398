//! The text form: what is printed parses to the same program, and what cannot be read is refused with its place.

use kiln_ir::{Draft, Op, Program, StatementKind, TextError};

const SAXPY: &str = "kernel saxpy(in x: f32[], inout y: f32[like x], a: f32) block(256) over(y) {
    let i: u64 = global.x;
    y[i] = fma(a, x[i], y[i]);
}
";

#[test]
fn a_program_prints_as_it_was_written() {
    assert_eq!(Program::parse(SAXPY).unwrap().to_string(), SAXPY);
}

#[test]
fn everything_the_grammar_has_prints_as_it_was_written() {
    let text = "kernel all(in x: f32[16], out y: u32[like x], inout z: i64[] unchecked, persistent w: u32[], a: f32, n: u32) block(8, 4, 2) over(x) flush {
    shared tile: f32[64];
    shared rest: u32[] raw;
    var sum: f32 = 0.0f32;
    var later: u32;
    later = 3u32;
    for i in 0u32..n step 2 {
        if x[i] > 0.5f32 {
            sum = sum + x[i] * (a - 1.0f32);
            continue;
        } else {
            break;
        }
    }
    while {
        let t: u32 = later;
        later = t / 2u32;
        = t > 1u32
    } {
        tile[thread.x] = -sum;
    }
    while later < n ^ 5u32 {
        later = later + 1u32;
    }
    barrier block;
    fence device;
    let k: bool = !(a < 1.0f32) & ((sum == f32#7f800000) | true);
    if k {
        trap(u32(len(x)));
    }
    return;
}
";
    // `y` is never written, so this is only read, not verified.
    assert_eq!(Draft::parse(text).unwrap().to_string(), text);
}

#[test]
fn a_remainder_needs_no_blanks() {
    let printed = "kernel rest(inout x: u32[], a: u32) block(1) {
    x[0u64] = a % 3u32;
    x[1u64] = x[0u64] % 5u32;
    x[2u64] = (a + 1u32) % 7u32 % 2u32;
}
";
    for text in [printed.to_owned(), printed.replace(" % ", "%"), printed.replace("% ", "%")] {
        let draft = Draft::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(draft.to_string(), printed);
    }
}

#[test]
fn operations_nest_and_keep_their_order() {
    let text = "kernel order(inout x: u32[]) block(1) {
    x[0u64] = x[1u64] - (x[2u64] - x[3u64]) - x[4u64] << 2u32;
    x[5u64] = atomic_add.acq_rel.system(x[0u64], neg(3u32)) & !x[6u64] | min(x[7u64], 9u32);
    atomic_compare_exchange.seq_cst.device(x[0u64], 1u32, 2u32);
    x[8u64] = select(warp_any(lane == 3u32), ballot(true), shuffle_up(x[9u64], 1u32));
    x[9u64] = u32.from_bits(-f32(-7i8)) + block_count(warp > 0u32);
}
";
    let program = Program::parse(text).unwrap();
    assert_eq!(program.to_string(), text);
    let loads =
        program.body.iter().filter(|s| matches!(s.kind, StatementKind::Let { op: Op::Load { .. }, .. }));
    assert_eq!(loads.count(), 7);
}

#[test]
fn a_program_built_in_rust_prints_and_parses() {
    let built = Program::build("built", |k| {
        let x = k.input::<f32>("x");
        let y = k.output::<f32>("y").like(x);
        let n = k.scalar::<u32>("n");
        let tile = k.shared::<f32>("tile", 32);
        k.block([32, 1, 1]);
        k.over(y);
        let t = k.thread(kiln_ir::Axis::X);
        let sum = k.var(0.0f32).named("sum");
        k.for_(0, n, |i| {
            let v = x.load(i);
            k.if_else(v.gt(0.0), || sum.set(sum + v * v), || k.continue_());
        });
        tile.store(t, sum);
        k.barrier();
        k.while_(|| sum.get().lt(10.0), || sum.set(sum + 1.0f32));
        y.store(t, tile.load(31u32 - t) + 2.0 * sum.get());
    })
    .unwrap();
    assert_eq!(Program::parse(&built.to_string()).unwrap(), built);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let place = |text: &str| match Program::parse(text).unwrap_err() {
        TextError::Syntax { line, column, what } => (line, column, what),
        other => panic!("{other}"),
    };
    assert_eq!(place("kernel f("), (1, 10, "expected the name of a parameter, but the text ends".into()));
    assert_eq!(
        place("kernel f() {\n  let x = 5;\n}"),
        (2, 11, "this number needs a type, as in 1u32 or 0.5f32".into())
    );
    assert_eq!(place("kernel f() {\n let x: u8 = 256;\n}"), (2, 14, "this number is no u8".into()));
    assert_eq!(place("kernel f() { y[0] = 1; }"), (1, 14, "unknown name `y`".into()));
    assert_eq!(
        place("kernel f() { let a = 1u32 + 1u64; }"),
        (1, 27, "the operands are u32 and u64; convert one, as in u32(x)".into())
    );
    assert_eq!(
        place("kernel f() { let a = 1 < 2; }"),
        (1, 24, "neither operand has a type; give one a type, as in 1u32".into())
    );
    assert_eq!(
        place("kernel f(n: u32) { let a: f32 = n; }"),
        (1, 33, "expected f32, but this is u32".into())
    );
    assert_eq!(place("kernel f() { \u{fc} }").1, 14);
    assert!(place(&format!("kernel f() {{ let a = {}1u32; }}", "(".repeat(5000))).2.contains("deep"));
    assert!(place(&format!("kernel f() {{ {} }}", "if true {".repeat(5000))).2.contains("deep"));
    assert!(place("kernel f() { return; } kernel g() { return; }").2.contains("ended here"));
}

/// A text that uses most of the grammar.
const RICH: &str = "kernel rich(in x: f32[16], inout y: u32[], a: f32) block(8, 4) over(x) flush {
    shared tile: f32[64];
    var sum: f32 = 0.0f32;
    for i in 0u32..4u32 step 2 { if x[i] > 0.5e-3 { sum = sum + x[i] * (a - 1.0f32); continue; } else { break; } }
    while { let t: u32 = y[0]; y[1] = t; = t > 1 } { tile[thread.x] = -sum; trap(3); }
    y[2] = atomic_add.acq_rel.system(y[0], 3u32) & !y[6] | min(y[7], 0xffu32);
    let k: bool = !(a < 1.0f32) & ((sum == f32#7f800000) | true);
    barrier block;
    fence device;
    y[3] = select(k, u32.from_bits(sum), u32(sqrt(a))) // comment
    ;
}";

#[test]
fn a_text_cut_anywhere_is_refused_and_never_panics() {
    Program::parse(RICH).unwrap();
    for end in (0..RICH.len()).filter(|end| RICH.is_char_boundary(*end)) {
        assert!(Program::parse(&RICH[..end]).is_err(), "cut at {end}");
    }
    for start in 1..RICH.len() {
        let _ = Program::parse(&RICH[start..]);
    }
}

#[test]
fn a_text_without_one_of_its_tokens_never_panics() {
    let words: Vec<&str> = RICH.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).collect();
    for skip in 0..words.len() {
        let text: String =
            words.iter().enumerate().filter(|(at, _)| *at != skip).map(|(_, word)| *word).collect();
        if let Ok(program) = Program::parse(&text) {
            assert_eq!(Program::parse(&program.to_string()).unwrap(), program);
        }
    }
}
