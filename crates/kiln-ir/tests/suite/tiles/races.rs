//! Races around products: the executor finds them, and the two orders of the interpreter show them.

use super::{bytes_of, small_integers};
use crate::rig::{Launch, Left, interpret, simulate};
use kiln_ir::{Program, PtxTarget, ThreadOrder, Type};

/// Two warps fill shared memory and each multiplies all of it, twice.
fn program([before, behind]: [&str; 2], ty: &str, sum: &str, step: u32) -> Program {
    let count = 16 * step;
    let text = format!(
        "kernel staged(in x: {ty}[], out y: {sum}[]) block(64) {{
            shared s: {ty}[{count}];
            tile sum: {sum}[16, 16];
            for turn in 0u32..2u32 {{
                for i in thread.x..{count} step 64 {{ s[i] = x[turn * {count}u32 + i]; }}
                {before}
                tile_multiply_add(sum, row_major s[0, {step}], column_major s[0, {step}], {step});
                {behind}
            }}
            tile_store(sum, row_major y[warp * 256u32, 16]);
        }}"
    );
    Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn launch(ty: Type, sum: Type, step: usize) -> Launch {
    let mut next = small_integers(4);
    let x = (0..32 * step).flat_map(|_| bytes_of(ty, next())).collect();
    let y = vec![0; 512 * sum.bytes() as usize];
    Launch { grid: [1, 1, 1], dynamic_shared_bytes: 0, scalars: Vec::new(), buffers: vec![x, y] }
}

#[test]
fn a_missing_barrier_around_a_product_is_found() {
    for (ty, sum, step) in super::FACTORS {
        let launch = launch(ty, sum, step);
        let orders = |program: &Program| {
            [ThreadOrder::Ascending, ThreadOrder::Descending]
                .map(|order| interpret(program, &launch, order).0)
        };
        for number in [70, 80, 90] {
            let target = PtxTarget::new(number).unwrap();
            let run = |barriers| {
                simulate(&program(barriers, ty.word(), sum.word(), step as u32), &launch, target, 0)
            };
            let right = run(["barrier block;", "barrier block;"]).unwrap();
            let whole = program(["barrier block;", "barrier block;"], ty.word(), sum.word(), step as u32);
            assert_eq!(orders(&whole), [right.clone(), right], "{ty} as sm_{number}");
            for barriers in [["", "barrier block;"], ["barrier block;", ""]] {
                let found = run(barriers).expect_err("a race");
                assert!(found.contains("race"), "{ty} as sm_{number}: {found}");
            }
        }
        let raced = program(["", "barrier block;"], ty.word(), sum.word(), step as u32);
        let [ascending, descending] = orders(&raced);
        assert_ne!(ascending, descending, "{ty}: the orders show it");
    }
}

#[test]
fn two_warps_that_store_to_one_place_are_found() {
    let text = "kernel both(inout y: i32[]) block(64) {
        tile one: i32[16, 8];
        tile_fill(one, i32(warp));
        tile_store(one, row_major y[0, 8]);
    }";
    let program = Program::parse(text).unwrap();
    let launch =
        Launch { grid: [1, 1, 1], dynamic_shared_bytes: 0, scalars: Vec::new(), buffers: vec![vec![0; 512]] };
    let found = simulate(&program, &launch, PtxTarget::new(90).unwrap(), 0).expect_err("a race");
    assert!(found.contains("race"), "{found}");
    let last = |order| match interpret(&program, &launch, order).0 {
        Left::Buffers(buffers) => buffers[0][0],
        trap @ Left::Trap { .. } => panic!("{trap:?}"),
    };
    assert_eq!([last(ThreadOrder::Ascending), last(ThreadOrder::Descending)], [1, 0]);
}

#[test]
fn the_lanes_of_a_warp_need_no_barrier_around_a_tile_operation() {
    let text = "kernel alone(in x: f16[], inout y: f32[]) block(32) {
        shared s: f16[256];
        tile sum: f32[16, 16];
        for turn in 0u32..3u32 {
            for i in lane..256 step 32 { s[i] = x[turn * 256u32 + i]; }
            tile_multiply_add(sum, row_major s[0, 16], column_major s[0, 16], 16);
            tile_store(sum, column_major y[0, 16]);
            y[lane * 7u32] = y[lane * 7u32 + 1u32] + 1.0;
            tile_load(sum, row_major y[0, 16]);
        }
        y[255 - lane] = y[255 - lane] * 2.0;
    }";
    let program = Program::parse(text).unwrap();
    let mut launch = launch(Type::F16, Type::F32, 16);
    launch.buffers[0].extend_from_within(..512);
    launch.buffers[1].truncate(1024);
    let meaning = interpret(&program, &launch, ThreadOrder::Ascending).0;
    for number in [70, 80, 90] {
        for seed in 0..10 {
            let left = simulate(&program, &launch, PtxTarget::new(number).unwrap(), seed);
            assert_eq!(left.as_ref(), Ok(&meaning), "sm_{number}, seed {seed}");
        }
    }
}
