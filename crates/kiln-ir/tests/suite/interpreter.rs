//! The interpreter: arguments, limits, orders, what it counts.

use kiln_ir::{InterpretError, Interpreter, Literal, OutOfRange, Program, ThreadOrder};

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap()
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_race_shows_as_a_difference_between_the_orders() {
    let race = parse("kernel race(inout x: u32[1]) block(4) { x[0] = thread.x; }");
    let run = |order| {
        let mut buffers = [words(&[9])];
        Interpreter { order, ..Interpreter::new([1, 1, 1]) }.run(&race, &[], &mut buffers).unwrap();
        buffers[0].clone()
    };
    assert_eq!(run(ThreadOrder::Ascending), words(&[3]));
    assert_eq!(run(ThreadOrder::Descending), words(&[0]));
}

#[test]
fn blocks_run_in_both_orders_too() {
    let race = parse("kernel race(inout x: u32[1]) block(1) { x[0] = block.x * 10 + block.y; }");
    let run = |order| {
        let mut buffers = [words(&[9])];
        Interpreter { order, ..Interpreter::new([3, 2, 1]) }.run(&race, &[], &mut buffers).unwrap();
        buffers[0].clone()
    };
    assert_eq!(run(ThreadOrder::Ascending), words(&[21]));
    assert_eq!(run(ThreadOrder::Descending), words(&[0]));
}

#[test]
fn what_is_out_of_range_is_counted_by_kind() {
    let text = "kernel count(inout x: u32[2]) block(1) {
        x[5] = 1; x[6] = x[7] + x[8] + x[9];
        atomic_add(x[2], 1);
    }";
    let outcome = Interpreter::new([2, 1, 1]).run(&parse(text), &[], &mut [words(&[0, 0])]).unwrap();
    assert_eq!(outcome.out_of_range, OutOfRange { loads: 6, stores: 4, atomics: 2 });
    assert_eq!(outcome.out_of_range.total(), 12);
    assert_eq!(outcome.covered_out_of_range, outcome.out_of_range, "it runs over no buffer");
    assert!(outcome.steps > 0);
}

#[test]
fn what_surplus_threads_access_out_of_range_is_counted_apart() {
    let run = |index: &str| {
        let text = format!(
            "kernel shift(in x: u32[], out y: u32[like x]) block(4) over(y) {{ y[global.x] = x[{index}]; }}"
        );
        let mut buffers = [words(&[1, 2, 3, 4, 5]), words(&[0; 5])];
        Interpreter::new([2, 1, 1]).run(&parse(&text), &[], &mut buffers).unwrap()
    };
    // Five elements and eight threads: three threads have none.
    let surplus = OutOfRange { loads: 3, stores: 3, atomics: 0 };
    let right = run("global.x");
    assert_eq!((right.out_of_range, right.covered_out_of_range), (surplus, OutOfRange::default()));
    let shifted = run("global.x + 1");
    assert_eq!(shifted.covered_out_of_range, OutOfRange { loads: 1, stores: 0, atomics: 0 });
    assert_eq!(shifted.out_of_range, OutOfRange { loads: 4, stores: 3, atomics: 0 });
}

#[test]
fn a_place_in_the_grid_does_not_wrap() {
    let text = "kernel far(inout x: u64[1]) block(1024) { atomic_max(x[0], global.x); }";
    // The last block comes first, and what it wrote stays when the others are too many.
    let how = Interpreter {
        order: ThreadOrder::Descending,
        step_limit: 20_000,
        ..Interpreter::new([(1 << 22) + 1, 1, 1])
    };
    let mut buffers = [vec![0; 8]];
    assert_eq!(how.run(&parse(text), &[], &mut buffers), Err(InterpretError::StepLimit { limit: 20_000 }));
    let seen = u64::from_le_bytes(buffers[0][..].try_into().unwrap());
    assert_eq!(seen, (1 << 32) + 1023);
}

#[test]
fn a_program_without_an_end_is_stopped() {
    let endless = parse("kernel endless() block(1) { while true { fence block; } }");
    let how = Interpreter { step_limit: 1000, ..Interpreter::new([1, 1, 1]) };
    assert_eq!(how.run(&endless, &[], &mut []), Err(InterpretError::StepLimit { limit: 1000 }));
}

#[test]
fn a_trap_names_code_block_and_thread() {
    let trap = parse(
        "kernel t(c: u32) block(4, 2) { if (block.y == 1) & (thread.x == 2) & (thread.y == 1) { trap(c + 1); } }",
    );
    let error = Interpreter::new([2, 2, 1]).run(&trap, &[Literal::from(6u32)], &mut []).unwrap_err();
    assert_eq!(error, InterpretError::Trap { code: 7, block: [0, 1, 0], thread: [2, 1, 0] });
    assert!(error.is_trap());
}

#[test]
fn an_unchecked_access_out_of_range_is_an_error_here() {
    let text = "kernel u(inout x: u32[] unchecked, i: i64) block(1) { x[i] = 1; }";
    let run = |index: i64| {
        Interpreter::new([1, 1, 1]).run(&parse(text), &[Literal::from(index)], &mut [words(&[0])])
    };
    run(0).unwrap();
    let expected = InterpretError::Unchecked { buffer: "x".into(), index: -1, length: 1 };
    assert_eq!(run(-1), Err(expected));
}

#[test]
fn arguments_that_do_not_fit_are_refused_by_name() {
    let program = parse("kernel f(in x: u32[2], inout y: u16[like x], a: f32) block(1) { y[0] = 1; }");
    let run = |scalars: &[Literal], buffers: &mut [Vec<u8>]| {
        Interpreter::new([1, 1, 1]).run(&program, scalars, buffers).unwrap_err().to_string()
    };
    let a = [Literal::from(1.0f32)];
    assert!(run(&[], &mut [words(&[1, 2]), vec![0; 4]]).contains("1 scalars and 2 buffers, but 0 and 2"));
    assert!(
        run(&[Literal::from(1u32)], &mut [words(&[1, 2]), vec![0; 4]]).contains("`a` is a f32, not a u32")
    );
    assert!(run(&a, &mut [words(&[1, 2, 3]), vec![0; 4]]).contains("`x` has 3 elements, but must have 2"));
    assert!(run(&a, &mut [words(&[1, 2]), vec![0; 6]]).contains("`y` has 3 elements, but must have 2"));
    assert!(
        run(&a, &mut [words(&[1, 2]), vec![0; 3]]).contains("3 bytes for `y` are no whole elements of 2")
    );
}
