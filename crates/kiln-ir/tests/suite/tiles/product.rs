//! Products of every type, shape, layout and place, with whole numbers, whose sums are exact.

use super::{FACTORS, Numbers, Product, all_layouts, bytes_of, last_buffer, numbers_of, small_integers};
use crate::rig::ptxas::{assemble, find_ptxas};
use crate::rig::{Launch, interpret, simulate};
use kiln_ir::{F16, Interpreter, Program, PtxTarget, ThreadOrder, Type};

/// One that lacks tensor cores, the first that has them, and newer ones.
const TARGETS: [u32; 5] = [70, 75, 80, 90, 120];

#[test]
fn sums_that_are_exact_are_the_same_everywhere() {
    let mut seed = 0;
    for (ty, sum, step) in FACTORS {
        for shape in [[16, 8, step], [32, 24, 2 * step], [48, 16, step]] {
            for (layouts, is_shared) in all_layouts().flat_map(|one| [(one, false), (one, true)]) {
                seed += 1;
                let product =
                    Product { layouts, is_shared, ..Product::new((ty, sum), shape, small_integers(seed)) };
                let what = format!("{ty} {shape:?} {layouts:?}, shared: {is_shared}");
                let exact: Vec<f64> = product.exact().into_iter().map(|(sum, _)| sum).collect();
                let interpreted = product.interpreted();
                assert_eq!(numbers_of(sum, &interpreted), exact, "{what}");
                let number = TARGETS[seed as usize % TARGETS.len()];
                for number in [70, 90, number] {
                    assert_eq!(product.simulated(number), interpreted, "{what} as sm_{number}");
                }
            }
        }
    }
}

#[test]
fn the_best_form_of_the_target_is_emitted() {
    for (ty, sum, step) in FACTORS {
        let product = Product::new((ty, sum), [16, 16, step], small_integers(1));
        let program = product.program();
        let text = |number| program.emit(PtxTarget::new(number).unwrap()).text;
        let form = match ty {
            Type::F16 => "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ",
            Type::Bf16 => "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ",
            Type::F32 => "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ",
            Type::I8 => "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ",
            _ => "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 ",
        };
        for number in [80, 90, 120] {
            // Two pieces of the tile; of doubles, two halves of each.
            let wanted = if ty == Type::F64 { 4 } else { 2 };
            assert_eq!(text(number).matches(form).count(), wanted, "{ty} as sm_{number}");
            let loads = text(number).matches("ldmatrix.sync.aligned.m8n8.x4.shared.b16").count();
            assert_eq!(loads, if ty == Type::F64 { 0 } else { 2 }, "{ty} as sm_{number}");
            // The matrices are seen to be inside of shared memory, so no other way is needed.
            assert!(!text(number).contains("ld.shared") || ty == Type::F64, "{ty} as sm_{number}");
        }
        for number in [70, 75] {
            let fused = if ty == Type::I8 { "mad.lo.s32" } else { "fma.rn" };
            assert!(!text(number).contains("mma.") && !text(number).contains("ldmatrix"), "{ty}");
            assert!(text(number).contains(fused), "{ty} as sm_{number}");
        }
    }
}

#[test]
fn ptxas_accepts_every_form() {
    let Some(ptxas) = find_ptxas() else {
        println!("skipped: no ptxas; set KILN_PTXAS to its path, or put it on PATH");
        return;
    };
    // Where a matrix is may be known only at run time, so the program has both ways.
    let unknown = "kernel unknown(out y: f32[], n: u64) block(32) {
        shared s: f16[];
        tile sum: f32[16, 24];
        tile_multiply_add(sum, row_major s[n * 8, n * 16], column_major s[0, n * 8 + 8], 16);
        tile_multiply_add(sum, column_major s[n * 8, 1099511627776], row_major s[0, -8i32], 16);
        tile_store(sum, column_major y[n, n]);
    }";
    let mut programs = vec![("unknown".to_owned(), Program::parse(unknown).unwrap())];
    for (ty, sum, step) in FACTORS {
        for (layouts, is_shared) in all_layouts().flat_map(|one| [(one, false), (one, true)]) {
            let product = Product { layouts, is_shared, ..Product::new((ty, sum), [16, 24, step], || 0.0) };
            programs.push((format!("{ty} {layouts:?} shared: {is_shared}"), product.program()));
        }
    }
    for target in [75, 80].map(|number| PtxTarget::new(number).unwrap()) {
        let text = |at: usize, program: &Program| {
            let text = program.emit(target).text;
            let body = text.split_once("\n\n").unwrap().1.to_owned();
            body.replace(&format!(".entry {}(", program.name), &format!(".entry k{at}("))
        };
        let version = programs.iter().map(|(_, program)| program.emit(target).text).max_by_key(|text| {
            let version: f64 = text.lines().next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
            (version * 10.0) as u32
        });
        let header = version.unwrap().split_once("\n\n").unwrap().0.to_owned();
        let bodies: Vec<String> = programs.iter().enumerate().map(|(at, one)| text(at, &one.1)).collect();
        let (accepted, log) =
            assemble(&ptxas, "tiles", &format!("{header}\n\n{}", bodies.join("\n")), target);
        assert!(accepted, "{target}:\n{log}");
    }
}

#[test]
fn lines_across_the_depth_are_transposed_by_the_load() {
    let layouts = [kiln_ir::MatrixLayout::ColumnMajor, kiln_ir::MatrixLayout::RowMajor];
    for (ty, is_half) in [(Type::F16, true), (Type::Bf16, true), (Type::F32, false), (Type::I8, false)] {
        let (_, sum, step) = FACTORS.into_iter().find(|factor| factor.0 == ty).unwrap();
        let product = Product { layouts, ..Product::new((ty, sum), [16, 24, step], small_integers(2)) };
        let text = product.program().emit(PtxTarget::new(90).unwrap()).text;
        assert_eq!(text.contains("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"), is_half, "{ty}");
        assert_eq!(text.contains("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16"), is_half, "{ty}");
    }
}

#[test]
fn products_add_up_over_several_operations_and_warps() {
    let text = "kernel chain(in a: i8[], in b: i8[], out c: i32[]) block(64) {
        tile sum: i32[16, 8];
        tile_fill(sum, 3);
        for k in 0u32..4u32 {
            tile_multiply_add(sum, row_major a[warp * 2048u32 + k * 32u32, 128], row_major b[k * 256u32, 8], 32);
        }
        tile_store(sum, column_major c[warp * 128u32, 16]);
    }";
    let program = Program::parse(text).unwrap();
    let mut next = small_integers(5);
    let (a, b) = (Numbers::new(32, 128, &mut next), Numbers::new(128, 8, &mut next));
    let [a_bytes, b_bytes] =
        [&a, &b].map(|matrix| matrix.values.iter().flat_map(|value| bytes_of(Type::I8, *value)).collect());
    let launch = Launch {
        grid: [1, 1, 1],
        dynamic_shared_bytes: 0,
        scalars: Vec::new(),
        buffers: vec![a_bytes, b_bytes, vec![0; 4 * 256]],
    };
    let expected = |at: usize| {
        let (warp, column, row) = (at / 128, at / 16 % 8, at % 16);
        3.0 + (0..128).map(|k| a.at(16 * warp + row, k) * b.at(k, column)).sum::<f64>()
    };
    let expected: Vec<f64> = (0..256).map(expected).collect();
    let interpreted = last_buffer(interpret(&program, &launch, ThreadOrder::Ascending).0);
    assert_eq!(numbers_of(Type::I32, &interpreted), expected);
    for number in TARGETS {
        let left = simulate(&program, &launch, PtxTarget::new(number).unwrap(), 3).unwrap();
        assert_eq!(last_buffer(left), interpreted, "sm_{number}");
    }
}

#[test]
fn tiles_are_zero_at_first_and_hold_what_they_were_given() {
    let text = "kernel hold(in x: f32[], out y: f32[], v: f32) block(32) {
        tile zero: f32[16, 8];
        tile other: f32[32, 16];
        tile_store(zero, row_major y[0, 8]);
        tile_load(other, column_major x[0, 32]);
        tile_store(other, row_major y[128, 16]);
        tile_fill(other, v * 2.0);
        tile_store(other, row_major y[640, 20]);
    }";
    let program = Program::parse(text).unwrap();
    let x: Vec<f64> = (0..512).map(f64::from).collect();
    let launch = Launch {
        grid: [1, 1, 1],
        dynamic_shared_bytes: 0,
        scalars: vec![4.5f32.into()],
        buffers: vec![
            x.iter().flat_map(|value| bytes_of(Type::F32, *value)).collect(),
            [7.0; 1280].iter().flat_map(|value| bytes_of(Type::F32, *value)).collect(),
        ],
    };
    let mut expected = vec![0.0; 128];
    expected.extend((0..512).map(|at| x[at % 16 * 32 + at / 16]));
    // Of the last rows the four elements between them are not stored.
    expected.extend((0..640).map(|at| if at % 20 < 16 { 9.0 } else { 7.0 }));
    for order in [ThreadOrder::Ascending, ThreadOrder::Descending] {
        let left = last_buffer(interpret(&program, &launch, order).0);
        assert_eq!(numbers_of(Type::F32, &left), expected);
    }
    for number in TARGETS {
        let left = simulate(&program, &launch, PtxTarget::new(number).unwrap(), 1).unwrap();
        assert_eq!(numbers_of(Type::F32, &last_buffer(left)), expected, "sm_{number}");
    }
}

#[test]
fn a_product_built_in_rust_is_the_one_that_its_text_says() {
    let built = Program::build("product", |k| {
        k.block([32, 1, 1]);
        let (a, b, c) = (k.input::<F16>("a"), k.input::<F16>("b"), k.in_out::<f32>("c"));
        let left = k.shared::<F16>("left", 256);
        let sum = k.tile::<f32>("sum", 16, 8);
        let n = k.scalar::<u32>("n");
        k.for_step(k.lane(), 256u32, 32u32, |i| left.store(i, a.load(i)));
        k.barrier();
        sum.fill(1.0);
        sum.multiply_add(left.row_major(0u32, 16u32), b.column_major(n * 2u32, 16u64), 16);
        sum.load(c.row_major(0u32, 8u32));
        sum.store(c.column_major(n, 16u32));
    })
    .unwrap();
    let text = built.to_string();
    assert!(text.contains("    tile sum: f32[16, 8];\n"), "{text}");
    let line = "tile_multiply_add(sum, row_major left[0u32, 16u32], column_major b[n * 2u32, 16u64], 16);";
    assert!(text.contains(&line.replace("[n ", "[%0 ")) || text.contains(line), "{text}");
    assert_eq!(Program::parse(&text).unwrap(), built);
    assert_eq!(Program::parse(&text).unwrap().to_string(), text);
    assert_eq!(built.simplified().simplified(), built.simplified());
}

#[test]
fn the_interpreter_counts_products() {
    let product = Product::new((Type::F16, Type::F32), [32, 24, 16], small_integers(9));
    let mut buffers = product.launch().buffers;
    let outcome = Interpreter::new([1, 1, 1]).run(&product.program(), &[], &mut buffers).unwrap();
    assert_eq!(outcome.tile_products, 32 * 24 * 16);
}
