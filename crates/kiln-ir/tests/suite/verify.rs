//! What the verifier refuses, with the reason and the place.

use kiln_ir::{
    Axis, Buffer, Draft, Extent, Literal, MAX_DEPTH, Program, Role, SourceLocation, Statement, StatementKind,
    TextError, VerifyError, VerifyReason,
};

/// The error of a text that can be read.
fn error(text: &str) -> VerifyError {
    match Program::parse(text) {
        Err(TextError::Verify(error)) => error,
        other => panic!("{other:?} for\n{text}"),
    }
}

/// The line and column of an error, and its reason in words.
fn refused(body: &str) -> (u32, u32, String) {
    let text = format!("kernel k(in x: f32[], inout y: u32[], n: u32) block(64) {{\n{body}\n}}");
    let error = error(&text);
    match error.location {
        SourceLocation::Text { line, column } => (line, column, error.reason.to_string()),
        other => panic!("{other}: {error}"),
    }
}

/// Whether a body is refused because threads may miss each other.
fn diverges(body: &str) -> bool {
    let text = format!(
        "kernel k(in x: u32[], inout y: u32[], n: u32) block(64) {{\n shared s: u32[64];\n{body}\n}}"
    );
    match Program::parse(&text) {
        Ok(_) => false,
        Err(TextError::Verify(error)) if error.is_divergent() => true,
        Err(other) => panic!("{other}\n{text}"),
    }
}

#[test]
fn barriers_in_divergent_code_are_refused() {
    for body in [
        "if thread.x < 3 { barrier block; }",
        "if y[0] == 0 { barrier block; }",
        "if x[thread.x] == 0 { barrier block; }",
        "if n > 3 { if lane == 0 { barrier block; } }",
        "if thread.x == 0 { return; } barrier block;",
        "for i in 0..thread.x { barrier block; }",
        "for i in 0..n { barrier block; if thread.x == i { break; } }",
        "for i in 0..n { if thread.x == i { continue; } barrier block; }",
        "for i in 0..n { barrier block; if thread.x == i { return; } }",
        "var v: u32 = 0; if thread.x == 1 { v = 1; } if v == 1 { barrier block; }",
        "var v: u32 = 0; for i in 0..n { if v > 3 { barrier block; } v = v + thread.x; }",
        "var v: u32 = 0; while v < n { v = v + 1u32; if thread.x == v { break; } } while v < 9 { v = v + 1u32; barrier block; }",
        "while s[0] == 0 { barrier block; }",
        "if atomic_add(y[0], 1) == 0 { barrier block; }",
        "if warp == 0 { barrier block; }",
        "if ballot(true) == 1 { barrier block; }",
        "if block.x == 0 { barrier grid; }",
        "if block_any(thread.x == n) { barrier grid; }",
        "if thread.x == 0 { y[0] = ballot(true); }",
        "if lane == 0 { let a = shuffle(n, 1); }",
        "if thread.x == 0 { return; } y[0] = warp_add(1u32);",
        "if warp == 0 { y[0] = u32(block_all(true)); }",
    ] {
        assert!(diverges(body), "{body}");
    }
}

#[test]
fn barriers_that_all_reach_are_fine() {
    for body in [
        "if n > 3 { barrier block; }",
        "if block.x == 0 { barrier block; }",
        "if x[n] > 3 { barrier grid; }",
        "if x[block.x] > 3 { barrier block; }",
        "if thread.x == 0 { y[0] = 1; } barrier block;",
        "for i in 0..n { barrier grid; if i == 3 { break; } }",
        "for i in 0..thread.x { y[i] = 1; } barrier block;",
        "for i in 0..n { if thread.x == i { continue; } y[0] = 1; } barrier block;",
        "while block_any(y[thread.x] > 3) { y[thread.x] = 0; }",
        "if warp == 0 { y[0] = warp_add(1u32); }",
        "if n == 1 { return; } barrier grid;",
        "if block_count(true) == 64 { barrier grid; }",
        "if thread.x == 0 { trap(1); } barrier block;",
        "var v: u32 = n; for i in 0..n { v = v + i; } if v == 1 { barrier grid; }",
        "if warp == 0 { return; } y[0] = ballot(true);",
    ] {
        assert!(!diverges(body), "{body}");
    }
}

#[test]
fn a_divergent_barrier_says_what_keeps_threads_away() {
    let (line, column, reason) = refused("if thread.x < 3 {\n  barrier block;\n}");
    assert_eq!((line, column), (3, 3));
    assert_eq!(
        reason,
        "`barrier block` may not be reached by all threads of the block: threads take different paths at 2:1; \
         move it to where all of them come"
    );
}

#[test]
fn variables_must_be_assigned_on_every_path() {
    for body in [
        "var v: u32; y[0] = v;",
        "var v: u32; if n > 1 { v = 1; } y[0] = v;",
        "var v: u32; for i in 0..n { v = i; } y[0] = v;",
        "var v: u32; while n > 1 { v = 1; } y[0] = v;",
        "var v: u32; if n > 1 { v = 1; } else { if n > 2 { v = 2; } } y[0] = v;",
    ] {
        let text = format!("kernel k(inout y: u32[], n: u32) block(1) {{ {body} }}");
        assert!(matches!(error(&text).reason, VerifyReason::Unassigned { .. }), "{body}");
    }
    for body in [
        "var v: u32; if n > 1 { v = 1; } else { v = 2; } y[0] = v;",
        "var v: u32; if n > 1 { v = 1; } else { return; } y[0] = v;",
        "var v: u32; if n > 1 { trap(1); } else { v = 1; } y[0] = v;",
        "for i in 0..n { var v: u32; if i > 1 { continue; } else { v = 2; } y[0] = v; }",
    ] {
        Program::parse(&format!("kernel k(inout y: u32[], n: u32) block(1) {{ {body} }}")).unwrap();
    }
}

#[test]
fn types_must_fit_with_the_place_of_the_operation() {
    assert_eq!(refused("let a = 1.0f32 % 2.0f32;"), (2, 16, "`%` does not exist for f32".into()));
    assert_eq!(refused("let a = true + false;").2, "`+` does not exist for bool");
    assert_eq!(refused("let a = sqrt(n);"), (2, 9, "`sqrt` does not exist for u32".into()));
    assert_eq!(refused("let a = sin(1u32);").2, "`sin` does not exist for u32");
    assert_eq!(refused("y[x[0]] = 1;").2, "the index must be an integer, not f32");
    assert_eq!(
        refused("let a = n << n + 1u32 == 3; let b = n << 1.0f32;").2,
        "the second operand must be u32, not f32"
    );
    assert_eq!(refused("let a = f64.from_bits(n);").2, "`f64.from_bits` does not exist for u32");
    assert_eq!(refused("let a = warp_or(x[0]);").2, "`warp_or` does not exist for f32");
    assert_eq!(refused("let a = select(n, 1u32, 2u32);").2, "the condition must be bool, not u32");
}

#[test]
fn roles_of_buffers_are_kept() {
    assert_eq!(refused("x[0] = 1.0;").2, "`x` is declared `in` and cannot be written");
    let text = "kernel k(out y: u32[]) block(1) { y[0] = y[1]; }";
    assert_eq!(error(text).reason.to_string(), "`y` is declared `out` and cannot be read");
    let text = "kernel k(out y: u32[]) block(1) { atomic_add(y[0], 1); }";
    assert_eq!(error(text).reason.to_string(), "`y` is declared `out` and cannot be changed");
    let text = "kernel k(out y: u32[], out z: u32[]) block(1) { y[0] = 1; }";
    assert_eq!(error(text).reason.to_string(), "`z` is an output, but nothing stores to it");
}

#[test]
fn sizes_must_be_possible() {
    let reason = |text: &str| error(text).reason.to_string();
    assert_eq!(reason("kernel k() block(0) { return; }"), "the block along x is 0, but can be 1 to 1024");
    assert_eq!(
        reason("kernel k() block(1, 1, 65) { return; }"),
        "the block along z is 65, but can be 1 to 64"
    );
    assert_eq!(
        reason("kernel k() block(64, 64) { return; }"),
        "the number of threads of a block is 4096, but can be at most 1024"
    );
    assert!(reason("kernel k() block(1) { shared s: f32[12289]; return; }").contains("make one dynamic"));
    assert!(
        reason("kernel k() block(1) { shared s: f32[18446744073709551615]; return; }")
            .contains("shared memory")
    );
    assert_eq!(
        reason("kernel k() block(1) { shared s: f32[0]; return; }"),
        "the count of `s` is 0, but must be at least 1"
    );
    assert!(
        reason("kernel k() block(1) { shared s: f32[]; shared t: f32[]; return; }").contains("both dynamic")
    );
    assert!(
        reason("kernel k(in x: f64[99999999999999999]) block(1) { return; }").contains("fit in an address")
    );
    assert!(
        reason("kernel k(in x: f64[like y], in y: f32[like x]) block(1) { return; }")
            .contains("its own size")
    );
    assert!(reason("kernel k() block(1) { for i in 0u8..9u8 step 0 { return; } }").contains("the step is 0"));
    assert!(
        reason("kernel k() block(1) { for i in 0i8..9i8 step -3 { return; } }").contains("the step is -3")
    );
    let refused = |text: &str| Program::parse(text).unwrap_err().to_string();
    let large = "kernel k() block(1) { for i in 0u8..9u8 step 256 { return; } }";
    assert!(refused(large).contains("this number is no u8"));
    let other = "kernel k(n: u32) block(1) { for i in 0u8..9u8 step n { return; } }";
    assert!(refused(other).contains("expected a step of u8, but this is u32"));
    // A step that differs from thread to thread makes the number of rounds differ, too.
    let divergent = "kernel k() block(64) { for i in 0u32..9u32 step thread.x + 1 { barrier block; } }";
    assert!(reason(divergent).contains("may not be reached by all threads of the block"));
    let together = "kernel k(n: u32) block(64) { for i in 0u32..9u32 step n { barrier block; } }";
    assert!(Program::parse(together).is_ok());
}

#[test]
fn names_are_unique_and_no_words_of_the_language() {
    let reason = |text: &str| error(text).reason;
    let is_no_name = |text: &str| matches!(Program::parse(text), Err(TextError::Syntax { what, .. }) if what.contains("is not a name"));
    assert!(matches!(
        reason("kernel k(a: f32, in a: f32[]) block(1) { return; }"),
        VerifyReason::Duplicate { .. }
    ));
    assert!(matches!(reason("kernel k(a: f32) block(1) { let a = lane; }"), VerifyReason::Duplicate { .. }));
    assert!(matches!(
        reason("kernel k() block(1) { let a = lane; let a = lane; }"),
        VerifyReason::Duplicate { .. }
    ));
    assert!(is_no_name("kernel k(min: f32) block(1) { return; }"));
    assert!(is_no_name("kernel while() block(1) { return; }"));
    assert!(is_no_name("kernel _() block(1) { return; }"));
    assert!(is_no_name("kernel WARP_SZ() block(1) { return; }"));
    Program::parse("kernel k() block(1) { if true { let a = lane; } else { let a = warp; } }").unwrap();
}

#[test]
fn loops_are_left_only_inside_of_loops() {
    assert_eq!(refused("if n > 1 {\n break; }"), (3, 2, "`break` is not in a loop".into()));
    assert_eq!(refused("continue;"), (2, 1, "`continue` is not in a loop".into()));
    assert_eq!(refused("while { break; = true } { return; }").2, "`break` is not in a loop");
}

#[test]
fn a_value_that_leaves_its_block_is_refused_with_the_line_of_rust() {
    let line = line!() + 4;
    let error = Program::build("leak", |k| {
        let y = k.in_out::<u32>("y");
        let leaked = std::cell::Cell::new(None);
        k.if_(true, || leaked.set(Some(k.lane())));
        y.store(0, leaked.get().unwrap() + 1);
    })
    .unwrap_err();
    assert!(matches!(error.reason, VerifyReason::Scope { .. }), "{error}");
    let SourceLocation::Rust(place) = error.location else { panic!("{error}") };
    assert_eq!((place.line(), place.file()), (line + 1, file!()));
    assert!(error.to_string().contains("verify.rs"), "{error}");
}

#[test]
fn drafts_made_by_hand_are_checked_too() {
    let statement = |kind| Statement { kind, location: SourceLocation::Unknown };
    let refused = |change: &dyn Fn(&mut Draft)| {
        let mut draft = Draft::new("hand");
        change(&mut draft);
        Program::new(draft).unwrap_err().reason
    };
    let value = |id| kiln_ir::Operand::Value(kiln_ir::ValueId(id));
    let reason = refused(&|draft| draft.body.push(statement(StatementKind::Trap(value(7)))));
    assert!(matches!(reason, VerifyReason::Scope { .. }));
    let reason = refused(&|draft| draft.over = Some(kiln_ir::BufferId(3)));
    assert!(matches!(reason, VerifyReason::Declaration { .. }));
    let reason = refused(&|draft| {
        draft.values.push(kiln_ir::Value { name: None, ty: kiln_ir::Type::U32 });
    });
    assert!(matches!(reason, VerifyReason::Numbering { .. }));
    let reason = refused(&|draft| {
        let (value, op) = (kiln_ir::ValueId(1), kiln_ir::Op::Builtin(kiln_ir::Builtin::Lane));
        draft.body.push(statement(StatementKind::Let { value, op }));
    });
    assert!(matches!(reason, VerifyReason::Numbering { expected: 0, found: 1 }));
    let reason = refused(&|draft| {
        let memory = kiln_ir::MemoryOperand::Buffer(kiln_ir::BufferId(0));
        let zero = Literal::from(0u32).into();
        draft.body.push(statement(StatementKind::Store { memory, index: zero, value: zero }));
    });
    assert!(matches!(reason, VerifyReason::Scope { .. }));
    let reason = refused(&|draft| {
        let (name, element) = ("x y".to_owned(), kiln_ir::Type::U32);
        let buffer = Buffer { name, element, role: Role::Input, extent: Extent::Dynamic, unchecked: false };
        draft.buffers.push(buffer);
    });
    assert!(matches!(reason, VerifyReason::Name { .. }));
}

#[test]
fn deep_nesting_is_refused_and_not_a_stack_overflow() {
    let deep = |depth: usize| {
        let mut block = Vec::new();
        for _ in 0..depth {
            let kind = StatementKind::If {
                condition: Literal::from(true).into(),
                then: block,
                otherwise: Vec::new(),
            };
            block = vec![Statement { kind, location: SourceLocation::Unknown }];
        }
        let mut draft = Draft::new("deep");
        draft.body = block;
        Program::new(draft)
    };
    deep(MAX_DEPTH - 1).unwrap();
    assert!(matches!(deep(MAX_DEPTH).unwrap_err().reason, VerifyReason::Depth { .. }));
}

#[test]
fn many_loops_inside_each_other_are_verified_in_time() {
    let mut text = "kernel k(n: u32) block(32) { var v: u32 = n; ".to_owned();
    (0..60).for_each(|_| text += "while v < n { ");
    text += "v = v + thread.x; barrier block;";
    (0..60).for_each(|_| text += "} ");
    text += "}";
    assert!(error(&text).is_divergent());
}

#[test]
fn what_a_built_program_says_is_verified_too() {
    let error = Program::build("apart", |k| {
        k.if_(k.thread(Axis::X).lt(3), || k.barrier());
    })
    .unwrap_err();
    assert!(error.is_divergent() && !error.is_type());
}
