//! Errors say where, what was expected, and what was found.

use kiln_ptx::{ParseError, Position, PtxModule};

/// A module whose kernel has `body` from line 6 on.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 g;\n.entry k(.param .u64 p) {{\n{body}\n}}\n"
    )
}

fn error(text: &str) -> ParseError {
    match PtxModule::parse(text) {
        Err(error) => error,
        Ok(_) => panic!("accepted:\n{text}"),
    }
}

#[test]
fn bodies_are_refused_with_the_place() {
    let cases = [
        ("  ret", "7:1: expected an operand or `;`, found `}`"),
        (
            "  add.s32 %r1, %r2, 1;",
            "6:11: unknown register or variable `%r1`; PTX declares names before they are used",
        ),
        (
            "  .reg .b32 %r<2>;\n  add.s32 %r1, %r2, 1;",
            "7:16: unknown register or variable `%r2`; PTX declares names before they are used",
        ),
        ("  bra NOWHERE;", "6:7: unknown label `NOWHERE`; PTX declares names before they are used"),
        ("  call f, (p);", "6:8: unknown function `f`; PTX declares names before they are used"),
        ("L:\n  ret;\nL:\n  ret;", "8:1: `L` is declared twice in the same block"),
        ("  .reg .b32 a;\n  .reg .f32 a;", "7:13: `a` is declared twice in the same block"),
        ("  .reg .b33 a;", "6:8: expected a type, an alignment or a name, found `.b33`"),
        ("  .reg .b32 a<;", "6:15: expected the number of registers, found `;`"),
        ("  @p ret;", "6:4: `p` is no predicate"),
        (
            "  ;;\n  st.global.u32 [%rd1], 5;",
            "7:18: unknown register or variable `%rd1`; PTX declares names before they are used",
        ),
        ("  .shared .align 3 .b8 s[4];", "6:18: an alignment is a power of two, not 3"),
        ("  .local .b8 s[-1];", "6:15: an array length is not negative"),
        ("  mov.u32 g, 0xZZ;", "6:14: expected a number that fits 64 bits, found `0xZZ`"),
        ("  mov.u32 g, 1/0;", "6:15: `/` cannot be computed for these constants"),
        ("  { ret;", "8:1: expected an instruction, a label, a directive or `}`, found the end of the text"),
        ("  .loc 1 x;", "6:10: expected a line, found `x`"),
        ("  call (p), , (p);", "6:13: expected the name of a function, found `,`"),
        (
            "  brx.idx g, TABLE;",
            "6:14: unknown branch table `TABLE`; PTX declares names before they are used",
        ),
        ("  /* open", "6:3: expected the end of the comment that begins here, found the end after `/*`"),
        (
            "  .pragma \"open;",
            "6:11: expected the end of the string that begins here, found the end after `\"`",
        ),
        ("  ld.u32 g, [%];", "6:14: expected an operand, found `%`"),
        ("  mov.u32 g, \u{fc};", "6:14: expected an operand, found `\u{fc}`"),
    ];
    for (body, expected) in cases {
        assert_eq!(error(&kernel(body)).to_string(), expected, "for\n{body}");
    }
}

#[test]
fn instructions_that_do_not_exist_are_refused_with_the_nearest() {
    for (body, expected) in [
        (
            "  madx.lo.u32 %r1, %r2, %r3, %r4;",
            "6:3: unknown instruction `madx.lo.u32`; did you mean `mad.lo.u32`?",
        ),
        ("  @!p9 ret;", "6:5: unknown predicate `p9`; PTX declares names before they are used"),
        ("  bar_sync 0;", "6:3: unknown instruction `bar_sync`; PTX has none of that name up to version 9.0"),
        (
            "  stt.global.u32 [p], 1;",
            "6:3: unknown instruction `stt.global.u32`; did you mean `st.global.u32`?",
        ),
        (
            "  lld .global.u32 a, [p];",
            "6:3: unknown instruction `lld.global.u32`; did you mean `ld.global.u32`?",
        ),
    ] {
        let error = error(&kernel(body));
        assert_eq!(error.to_string(), expected, "for\n{body}");
        assert_eq!(error.is_unknown_instruction(), body.trim_start() != "@!p9 ret;");
    }
    let newer = kernel("  quux.u32 5;").replace(".version 9.0", ".version 9.1");
    assert!(PtxModule::parse(&newer).is_ok(), "a newer version may have it");
    assert!(PtxModule::parse(&kernel("  _warpsync 5;")).is_ok(), "an internal instruction of NVIDIA's tools");
    let long = error(&kernel(&format!("{}.u32 5;", "x".repeat(10_000)))).to_string();
    assert!(long.len() < 200, "{long}");
}

#[test]
fn modules_are_refused_with_the_place() {
    let head = ".version 9.0\n.target sm_90\n";
    let cases = [
        (String::new(), "1:1: expected `.version`, found the end of the text"),
        (".version nine".into(), "1:10: expected a version such as 9.0, found `nine`"),
        (".version 9.0\n.entry".into(), "2:1: expected `.target`, found `.entry`"),
        (format!("{head}.address_size 16"), "3:15: an address has 32 or 64 bits, not 16"),
        (
            format!("{head}.entry k() .maxntid -1 {{}}"),
            "3:21: the bound lies between 0 and 4294967295, unlike -1",
        ),
        (format!("{head}.func f() {{}} .func f() {{}}"), "3:20: `f` is declared twice in the same block"),
        (format!("{head}.func f(); .entry f() {{}}"), "3:19: declared as `.entry` here and as `.func` there"),
        (format!("{head}.global .u32 f; .func f();"), "3:23: `f` is declared twice in the same block"),
        (
            format!("{head}.global .u32 x = y;"),
            "3:18: unknown variable or function `y`; PTX declares names before they are used",
        ),
        (
            format!("{head}.global .u8 x[2] = {{1, 2, 3}};"),
            "3:27: expected `}`, because the variable has no more elements, found `3`",
        ),
        (
            format!("{head}.global .u8 x[2] = {{{{1}}, 2}};"),
            "3:21: expected a constant, because the variable has no more dimensions, found `{`",
        ),
        (format!("{head}.alias a, b;"), "3:8: unknown function `a`; PTX declares names before they are used"),
        (format!("{head}.section .debug {{ .b8 1"), "3:24: expected `}`, found the end of the text"),
        (
            format!("{head}wrong"),
            "3:1: expected a function, a variable or another directive of the module, found `wrong`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(&text).to_string(), expected, "for\n{text}");
    }
}

#[test]
fn kinds_of_errors_can_be_told_apart() {
    let unknown = error(&kernel("bra NOWHERE;"));
    assert!(unknown.is_unknown_name() && !unknown.is_limit());
    let deep = error(&kernel(&"{".repeat(100)));
    assert!(deep.is_limit() && !deep.is_unknown_name());
    assert_eq!(deep.position(), Position { line: 6, column: 64 });
}

#[test]
fn a_long_token_is_quoted_short() {
    let text = error(&kernel(&format!("bra {};", "x".repeat(10_000)))).to_string();
    assert!(text.len() < 200, "{text}");
    assert!(text.contains("xxx..."), "{text}");
}

/// A kernel with a register of each kind, whose last line is `line`.
fn with_registers(line: &str) -> String {
    kernel(&format!(
        "  .reg .b16 h; .reg .b32 a, b, c; .reg .u32 u; .reg .b64 q; .reg .f32 f; .reg .f64 x; .reg .pred p;\n  {line}"
    ))
}

#[test]
fn instructions_that_the_assembler_refuses_are_refused() {
    let cases = [
        ("add.u32 a;", "`add.u32` takes 3 operands, not 1"),
        ("add.u32 a, b;", "`add.u32` takes 3 operands, not 2"),
        ("add.u32 a, b, c, b;", "`add.u32` takes 3 operands, not 4"),
        ("mad.lo.u32 a, b, c;", "`mad.lo.u32` takes 4 operands, not 3"),
        ("shl.b32 a, b, c, c;", "`shl.b32` takes 3 operands, not 4"),
        ("setp.eq.u32 p, b;", "`setp.eq.u32` takes 3 to 4 operands, not 2"),
        ("st.global.u32 [q];", "`st.global.u32` takes 2 to 3 operands, not 1"),
        ("add.u32 a, q, b;", "operand 2 of `add.u32` is a register of type .b64, where .u32 is wanted"),
        ("add.u32 a, h, b;", "operand 2 of `add.u32` is a register of type .b16, where .u32 is wanted"),
        ("add.u32 a, x, b;", "operand 2 of `add.u32` is a register of type .f64, where .u32 is wanted"),
        ("add.f32 f, u, f;", "operand 2 of `add.f32` is a register of type .u32, where .f32 is wanted"),
        ("mov.b32 a, h;", "operand 2 of `mov.b32` is a register of type .b16, where .b32 is wanted"),
        ("and.b32 a, p, b;", "operand 2 of `and.b32` is a register of type .pred, where .b32 is wanted"),
        ("selp.b32 a, b, c, c;", "operand 4 of `selp.b32` is a register of type .b32, where .pred is wanted"),
        (
            "mul.wide.u32 a, b, c;",
            "operand 1 of `mul.wide.u32` is a register of type .b32, where .b64 is wanted",
        ),
        ("shl.b64 q, q, q;", "operand 3 of `shl.b64` is a register of type .b64, where .b32 is wanted"),
        ("mul.u32 a, b, c;", "`mul.u32` needs `.lo`, `.hi` or `.wide`"),
        ("setp.u32 p, b, c;", "`setp.u32` needs a comparison such as `.lt`"),
        ("div.f32 f, f, f;", "`div.f32` needs a rounding such as `.rn`, or `.approx`"),
        ("fma.f32 f, f, f, f;", "`fma.f32` needs a rounding such as `.rn`"),
        ("add.rn.u32 a, b, c;", "`add.rn.u32` has a rounding, which integers do not take"),
        (
            "add.volatile.u32 a, b, c;",
            "`add.volatile.u32` has a word about memory, which arithmetic does not take",
        ),
    ];
    for (line, said) in cases {
        assert_eq!(error(&with_registers(line)).to_string(), format!("7:3: {said}"), "{line}");
    }
}

#[test]
fn instructions_that_the_assembler_takes_are_taken() {
    let lines = [
        "add.u32 a, b, 5;",
        "add.s32 u, a, b;",
        "add.f32 f, a, f;",
        "mov.b32 a, f;",
        "mov.f32 f, a;",
        "mov.b64 q, {a, b};",
        "mov.u64 q, g;",
        "mul.wide.u16 a, h, h;",
        "mad.wide.u32 q, a, b, q;",
        "shl.b64 q, q, a;",
        "shr.u16 h, h, a;",
        "setp.lt.and.f64 p|p, x, x, !p;",
        "set.gt.u32.f64 a, x, x;",
        "selp.f32 f, f, a, p;",
        "slct.u64.s32 q, q, q, a;",
        "popc.b64 a, q;",
        "bfi.b64 q, q, q, a, 8;",
        "min.f32 f, f, f;",
        "div.full.f32 f, f, f;",
        "cvt.u64.u16 q, h;",
        "ld.global.u8 a, [q];",
        "ld.global.v2.u32 {a, b}, [q];",
        "and.pred p, p, p;",
    ];
    for line in lines {
        let module = PtxModule::parse(&with_registers(line));
        assert!(module.is_ok(), "{line}: {}", module.unwrap_err());
    }
}

#[test]
fn calls_have_the_operands_that_the_function_was_declared_with() {
    let call = |line: &str| {
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.func (.reg .b32 r) f(.reg .b32 a, .reg .b32 b) {{ ret; }}\n\
             .entry k() {{ .reg .b32 x;\n{line}\nret; }}\n"
        )
    };
    assert!(PtxModule::parse(&call("call (x), f, (x, x);")).is_ok());
    let said = error(&call("call (x), f, (x);")).to_string();
    assert_eq!(said, "6:11: the call of `f` has another number of arguments (1) than its declaration (2)");
    let said = error(&call("call f, (x, x);")).to_string();
    assert_eq!(said, "6:6: the call of `f` has another number of results (0) than its declaration (1)");
}
