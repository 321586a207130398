//! Loops whose step only the launch knows: in Rust, as text, folded, and what they cost where the step cannot be below 1.

use kiln_ir::{
    Axis, EntryParameterKind, InterpretError, Interpreter, Literal, Program, PtxTarget, STEP_TRAP,
    SourceLocation, StatementKind,
};

/// Adds 1 to every element, with a grid of any size; the step in `u64` cannot wrap to 0.
fn grid_stride() -> Program {
    Program::build("grid_stride", |k| {
        let x = k.in_out::<u32>("x");
        k.block([4, 1, 1]);
        let stride = k.grid_dim(Axis::X).to::<u64>() * k.block_dim(Axis::X).to::<u64>();
        k.for_step(k.global_x(), x.length(), stride, |i| x.store(i, x.load(i) + 1));
    })
    .unwrap()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn run(
    program: &Program,
    blocks: u32,
    scalars: &[Literal],
    words: &[u32],
) -> Result<Vec<u8>, InterpretError> {
    let mut buffers = [bytes(words)];
    Interpreter::new([blocks, 1, 1]).run(program, scalars, &mut buffers)?;
    let [left] = buffers;
    Ok(left)
}

#[test]
fn a_grid_of_any_size_covers_a_buffer() {
    let program = grid_stride();
    let x: Vec<u32> = (0..23).collect();
    let after: Vec<u32> = (1..24).collect();
    for blocks in [1, 2, 3, 6, 100] {
        assert_eq!(run(&program, blocks, &[], &x), Ok(bytes(&after)), "{blocks} blocks");
    }
    let text = program.to_string();
    assert!(text.contains(" step "), "{text}");
    assert_eq!(Program::parse(&text), Ok(program));
}

#[test]
fn a_step_that_cannot_be_below_one_costs_no_check() {
    let program = grid_stride();
    assert!(!program.can_trap() && program.traps().is_empty());
    let emitted = program.emit(PtxTarget::new(90).unwrap());
    assert!(
        !emitted.layout.has(EntryParameterKind::Status) && !emitted.text.contains("atom"),
        "{}",
        emitted.text
    );
}

#[test]
fn a_step_that_may_be_below_one_is_checked_where_the_loop_begins() {
    let text = "kernel k(inout x: u32[], by: u32) block(1) {\n    for i in 0..9 step by { x[0] = i; }\n}";
    let program = Program::parse(text).unwrap();
    assert_eq!(program.traps(), [SourceLocation::Text { line: 2, column: 5 }]);
    let emitted = program.emit(PtxTarget::new(70).unwrap());
    assert!(program.can_trap() && emitted.layout.has(EntryParameterKind::Status));
    assert_eq!(run(&program, 1, &[Literal::from(4u32)], &[7]), Ok(bytes(&[8])));
    let error = run(&program, 1, &[Literal::from(0u32)], &[7]).unwrap_err();
    assert_eq!(error, InterpretError::Trap { code: STEP_TRAP, block: [0; 3], thread: [0; 3] });
    assert!(error.to_string().contains("the step of a `for` was below 1"), "{error}");
}

#[test]
fn a_step_that_folds_to_less_than_one_becomes_a_trap() {
    let text =
        "kernel k(inout x: u32[]) block(1) { for i in 0u32..9u32 step 3u32 - 3u32 { x[0] = 1; } x[0] = 2; }";
    let folded = Program::parse(text).unwrap().simplified();
    assert!(
        matches!(folded.body[0].kind, StatementKind::Trap(code) if code == Literal::from(STEP_TRAP).into())
    );
    assert_eq!(Program::parse(&folded.to_string()), Ok(folded.clone()));
    let one = "kernel k(inout x: u32[]) block(1) { for i in 0u32..9u32 step 3u32 - 2u32 { x[0] = i; } }";
    let folded = Program::parse(one).unwrap().simplified();
    assert!(!folded.can_trap() && folded.to_string().contains("in 0u32..9u32 {"), "{folded}");
}
