//! What the verifier and the parser refuse of tiles, with the reason and the place.

use kiln_ir::{
    F16, MatrixLayout, MatrixOperand, MemoryOperand, Program, SourceLocation, Statement, StatementKind,
    TextError, TileId, TileOp, VerifyError, VerifyReason,
};

/// The declarations around a body.
fn text(body: &str) -> String {
    format!(
        "kernel k(in a: f16[], in b: f16[], inout c: f32[], out o: f32[], in w: u16[], n: u32) block(64) {{
shared left: f16[1024];
tile sum: f32[16, 8];
tile other: i32[16, 8];
o[0] = 1.0;
{body}
}}"
    )
}

/// The place and the words of what the verifier refuses.
fn refused(body: &str) -> (u32, u32, String) {
    match Program::parse(&text(body)) {
        Err(TextError::Verify(VerifyError { location: SourceLocation::Text { line, column }, reason })) => {
            (line, column, reason.to_string())
        }
        other => panic!("{other:?} for {body}"),
    }
}

#[test]
fn wrong_shapes_and_types_are_refused_with_their_place() {
    let product = "row_major a[0, 16], row_major b[0, 8]";
    for (body, words) in [
        (
            format!("tile_multiply_add(sum, {product}, 8);"),
            "the depth of the product is 8, but must be a multiple of 16 for f16",
        ),
        (format!("tile_multiply_add(sum, {product}, 0);"), "the depth of the product is 0"),
        (format!("tile_multiply_add(sum, {product}, 512);"), "at most 256"),
        (
            format!("tile_multiply_add(other, {product}, 16);"),
            "tile `other`, which adds products of f16, must be f32, not i32",
        ),
        (
            "tile_multiply_add(sum, row_major a[0, 16], row_major c[0, 8], 16);".into(),
            "the element of `c` must be f16, not f32",
        ),
        (
            "tile_multiply_add(sum, row_major w[0, 16], row_major w[0, 8], 16);".into(),
            "`tile_multiply_add` does not exist for u16",
        ),
        ("tile_load(sum, row_major a[0, 8]);".into(), "the element of `a` must be f32, not f16"),
        ("tile_load(other, row_major c[0, 8]);".into(), "the element of `c` must be i32, not f32"),
        ("tile_load(sum, row_major o[0, 8]);".into(), "`o` is declared `out` and cannot be read"),
        ("tile_store(other, row_major w[0, 8]);".into(), "the element of `w` must be i32, not u16"),
        ("tile_load(sum, row_major c[0.5f32, 8]);".into(), "the start of `c` must be an integer, not f32"),
        ("tile_load(sum, row_major c[0, true]);".into(), "the stride of `c` must be an integer, not bool"),
        (
            "tile_store(sum, row_major c[0, 7]);".into(),
            "the stride of `c` is 7, but must be at least 8 in a store",
        ),
        (
            "tile_store(sum, column_major c[0, 8]);".into(),
            "the stride of `c` is 8, but must be at least 16 in a store",
        ),
    ] {
        let (line, column, reason) = refused(&format!("  {body}"));
        assert_eq!((line, column), (6, 3), "{body}");
        assert!(reason.contains(words), "{body}: {reason}");
    }
}

#[test]
fn a_store_to_an_input_is_refused_and_one_to_an_output_counts() {
    let error = Program::parse(
        "kernel k(in c: f32[]) block(32) { tile t: f32[16, 8]; tile_store(t, row_major c[0, 8]); }",
    );
    assert!(error.unwrap_err().to_string().contains("`c` is declared `in` and cannot be written"));
    let text = "kernel k(out c: f32[]) block(32) { tile t: f32[16, 8]; tile_store(t, row_major c[0, 8]); }";
    Program::parse(text).unwrap();
}

#[test]
fn factors_in_shared_memory_must_be_aligned() {
    for (start, stride, what) in [
        ("0", "12", "the stride of `left`"),
        ("4", "16", "the start of `left`"),
        ("n", "16", "the start of `left`"),
        ("warp * 20u32", "16", "the start of `left`"),
        ("0", "n * 4u32", "the stride of `left`"),
    ] {
        let body =
            format!("tile_multiply_add(sum, row_major left[{start}, {stride}], row_major b[0, 8], 16);");
        let (line, _, reason) = refused(&body);
        let words = format!("{what} is not seen to be a multiple of 8 elements, 16 bytes");
        assert!(line == 6 && reason.starts_with(&words), "{body}: {reason}");
    }
    for (start, stride) in
        [("0", "24"), ("warp * 64u32", "n * 8u32"), ("n << 3", "16i32"), ("u64(n) * 40", "-8i64")]
    {
        let body =
            format!("tile_multiply_add(sum, row_major left[{start}, {stride}], row_major b[0, 8], 16);");
        Program::parse(&text(&body)).unwrap_or_else(|error| panic!("{error}: {body}"));
    }
    // Only products need it.
    let loads = "kernel k(out c: f32[]) block(32) {
        shared s: f32[400];
        tile t: f32[16, 8];
        tile_load(t, row_major s[3, 9]);
        tile_store(t, row_major s[1, 17]);
        tile_store(t, row_major c[0, 8]);
    }";
    Program::parse(loads).unwrap();
}

#[test]
fn tiles_in_diverged_control_flow_are_refused() {
    for body in [
        "if lane == 0 { tile_fill(sum, 0.0); }",
        "if thread.x < 32 { tile_fill(sum, 0.0); }",
        "if c[0] > 0.0 { tile_store(sum, row_major c[0, 8]); }",
        "if thread.x == 5 { return; } tile_load(sum, row_major c[0, 8]);",
        "for i in 0..thread.x { tile_fill(sum, 0.0); }",
        "for i in 0..n { if thread.x == i { break; } tile_fill(sum, 0.0); }",
    ] {
        let (_, _, reason) = refused(body);
        assert!(reason.contains("may not be reached by all threads of the warp"), "{body}: {reason}");
    }
    for body in [
        "if warp == 1 { tile_fill(sum, 0.0); }",
        "if n > 3 { tile_fill(sum, 0.0); }",
        "for i in 0..n { tile_fill(sum, 0.0); if warp == i { break; } }",
        "if warp_any(lane == n) { tile_fill(sum, 0.0); }",
    ] {
        Program::parse(&text(body)).unwrap_or_else(|error| panic!("{error}: {body}"));
    }
}

#[test]
fn operands_that_differ_between_lanes_are_refused() {
    for (body, what) in [
        ("tile_fill(sum, f32(lane));", "the value of `tile_fill`"),
        ("tile_load(sum, row_major c[thread.x, 8]);", "the start of `c` of `tile_load`"),
        ("tile_store(sum, row_major c[0, u64(c[0])]);", "the stride of `c` of `tile_store`"),
        (
            "tile_multiply_add(sum, row_major a[0, 16], row_major b[global.x, 8], 16);",
            "the start of `b` of `tile_multiply_add`",
        ),
        ("var at: u32 = 0; if lane == 3 { at = 1; } tile_load(sum, row_major c[at, 8]);", "the start of `c`"),
    ] {
        let (line, _, reason) = refused(body);
        let words = format!("{what} may differ between the lanes of a warp: it depends on the thread, by ");
        let start = words.split(" may").next().unwrap();
        assert!(
            line == 6 && reason.starts_with(start) && reason.contains("depends on the thread, by "),
            "{reason}"
        );
    }
    Program::parse(&text("tile_fill(sum, warp_add(f32(lane)));")).unwrap();
}

#[test]
fn declarations_of_tiles_are_checked() {
    for (declared, block, words) in [
        ("tile t: f32[8, 8];", 32, "the number of rows of tile `t` is 8, but must be a multiple of 16"),
        ("tile t: f32[0, 8];", 32, "the number of rows of tile `t` is 0"),
        ("tile t: f32[16, 12];", 32, "the number of columns of tile `t` is 12, but must be a multiple of 8"),
        ("tile t: f16[16, 8];", 32, "the element of tile `t` must be f32, i32 or f64, not f16"),
        ("tile t: f32[128, 64];", 32, "the size of tile `t` is 32768, but can be at most 16384 bytes"),
        ("tile t: f32[16, 8];", 48, "the number of threads of a block is 48, but must be a multiple of 32"),
        ("tile t: f32[16, 8]; tile t: f32[16, 8];", 32, "`t` is taken"),
        ("tile x: f32[16, 8];", 32, "`x` is taken"),
        ("tile tile_fill: f32[16, 8];", 32, "`tile_fill` is not a name"),
        ("tile t: f32[16, 8]; let t = lane;", 32, "`t` is taken"),
    ] {
        let text = format!("kernel k(inout x: f32[]) block({block}) {{ {declared} let q = 1u32; }}");
        let error = Program::parse(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{declared}: {error}");
    }
    let whole =
        Program::parse("kernel k(inout x: f32[]) block(64) { tile t: f32[16, 8]; tile_fill(t, 0.0); }")
            .unwrap();
    assert!(whole.with_block([16, 2, 1]).is_ok() && whole.with_block([16, 1, 1]).is_err());
}

#[test]
fn a_text_that_is_no_tile_operation_says_where() {
    for (body, place, words) in [
        ("tile_fill(none, 0.0);", (6, 11), "there is no tile `none`"),
        ("tile_fill(c, 0.0);", (6, 11), "there is no tile `c`"),
        ("tile_load(sum, diagonal c[0, 8]);", (6, 16), "expected `row_major` or `column_major`"),
        ("tile_load(sum, row_major sum[0, 8]);", (6, 26), "there is no memory `sum`"),
        ("tile_load(sum, row_major c[0]);", (6, 29), "expected `,`, not `]`"),
        ("let v = sum;", (6, 9), "`sum` is a tile, which only tile statements use"),
        ("sum = 1.0;", (6, 1), "`sum` is a tile, which only tile statements use"),
        ("tile_fill(sum, 1u32);", (6, 16), "expected f32, but this is u32"),
    ] {
        match Program::parse(&text(body)) {
            Err(TextError::Syntax { line, column, what }) => {
                assert_eq!(((line, column), &*what), (place, words), "{body}");
            }
            other => panic!("{other:?} for {body}"),
        }
    }
    // `tile` is a name as before.
    let text = "kernel k(inout x: u32[]) block(32) { shared tile: u32[4]; tile[0] = 1; for row_major in 0u32..2u32 { x[row_major] = tile[0]; } }";
    Program::parse(text).unwrap();
    let text = "kernel k(inout x: u32[]) block(32) { var tile: u32 = 3; tile = 4; x[0] = tile; }";
    Program::parse(text).unwrap();
}

#[test]
fn a_kernel_built_in_rust_is_refused_with_its_line() {
    let line = line!() + 6;
    let error = Program::build("k", |k| {
        k.block([32, 1, 1]);
        let (a, c) = (k.input::<F16>("a"), k.output::<f32>("c"));
        let sum = k.tile::<f32>("sum", 16, 8);
        k.if_(k.lane().eq(0), || {
            sum.multiply_add(a.row_major(0, 16), a.row_major(0, 8), 16);
        });
        sum.store(c.row_major(0, 8));
    });
    let error = error.unwrap_err();
    assert!(error.is_divergent() && error.to_string().contains(&format!("refused.rs:{line}")), "{error}");
}

#[test]
fn a_draft_that_names_no_tile_is_refused() {
    let mut draft = Program::parse(&text("tile_fill(sum, 0.0);")).unwrap().into_draft();
    let from = MatrixOperand {
        memory: MemoryOperand::Buffer(kiln_ir::BufferId(2)),
        start: kiln_ir::Literal::from(0u32).into(),
        stride: kiln_ir::ValueId(77).into(),
        layout: MatrixLayout::RowMajor,
    };
    let add = |kind: TileOp| Statement { kind: StatementKind::Tile(kind), location: SourceLocation::Unknown };
    draft.body.push(add(TileOp::Load { tile: TileId(0), from }));
    let error = Program::new(draft.clone()).unwrap_err();
    assert!(matches!(error.reason, VerifyReason::Scope { .. }), "{error}");
    draft.body.pop();
    let value = kiln_ir::Literal::from(0.0f32).into();
    draft.body.push(add(TileOp::Fill { tile: TileId(9), value }));
    let error = Program::new(draft).unwrap_err();
    assert_eq!(error.reason.to_string(), "tile 9 is not in scope; what a block defines ends with the block");
}
