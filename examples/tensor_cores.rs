//! A matrix product on the tensor cores, written in Rust. Each warp holds a tile of the result in its registers and adds products of matrices that the
//! block copied to shared memory. The same program runs on devices without tensor cores, on the simulated device and on the interpreter.
//!
//! `cargo run -p kiln --example tensor_cores`, with a GPU or without one.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::ir::{Axis, F16, PtxTarget, VerifyError};
use kiln::program::{Backend, Bindings, DispatchConfig, Program};

const ROWS: usize = 128;
const COLUMNS: usize = 192;
const DEPTH: usize = 96;
/// Rows and columns of the result that a block computes with four warps, and the depth it copies at once.
const BLOCK: u32 = 64;
const SLAB: u32 = 32;
/// Elements from line to line in shared memory: 16 bytes more than the line, so that lines begin in different banks.
const LEFT_STRIDE: u32 = SLAB + 8;
const RIGHT_STRIDE: u32 = BLOCK + 8;

/// `c = a * b`. Rows and columns are multiples of 64, the depth is one of 32.
fn matmul() -> Result<Program, VerifyError> {
    Program::build("matmul", |k| {
        k.block([128, 1, 1]);
        let (a, b) = (k.input::<F16>("a"), k.input::<F16>("b"));
        let c = k.output::<f32>("c");
        let (columns, depth) = (k.scalar::<u32>("columns"), k.scalar::<u32>("depth"));
        let left = k.shared::<F16>("left", u64::from(BLOCK * LEFT_STRIDE)).raw();
        let right = k.shared::<F16>("right", u64::from(SLAB * RIGHT_STRIDE)).raw();
        let sum = k.tile::<f32>("sum", BLOCK / 2, BLOCK / 2);

        let (row, column) = (k.block_index(Axis::Y) * BLOCK, k.block_index(Axis::X) * BLOCK);
        let (down, across) = (k.warp() / 2u32 * (BLOCK / 2), k.warp() % 2u32 * (BLOCK / 2));
        k.for_step(0u32, depth, SLAB, |at| {
            k.for_step(k.thread(Axis::X), BLOCK * SLAB, 128u32, |i| {
                let (y, x) = (i / SLAB, i % SLAB);
                left.store(y * LEFT_STRIDE + x, a.load((row + y) * depth + at + x));
            });
            k.for_step(k.thread(Axis::X), SLAB * BLOCK, 128u32, |i| {
                let (y, x) = (i / BLOCK, i % BLOCK);
                right.store(y * RIGHT_STRIDE + x, b.load((at + y) * columns + column + x));
            });
            k.barrier();
            let (left, right) =
                (left.row_major(down * LEFT_STRIDE, LEFT_STRIDE), right.row_major(across, RIGHT_STRIDE));
            sum.multiply_add(left, right, SLAB);
            k.barrier();
        });
        sum.store(c.row_major((row + down) * columns + column + across, columns));
    })
}

/// Numbers of different sizes that a half has.
fn halves(count: usize, factor: usize) -> Vec<f32> {
    let number = |at: usize| ((at * factor % 2039) as f32 / 1024.0 - 1.0) * [0.0625, 1.0, 16.0][at % 3];
    (0..count).map(number).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = matmul()?;
    for (number, what) in [(90, "tensor cores"), (70, "fused products")] {
        let text = PtxTarget::new(number).map(|target| program.emit(target).text).unwrap_or_default();
        let count = |word: &str| text.matches(word).count();
        println!(
            "sm_{number}, {what}: {} mma, {} ldmatrix, {} fma",
            count("mma."),
            count("ldmatrix."),
            count("fma.")
        );
    }

    let (a, b) = (halves(ROWS * DEPTH, 37), halves(DEPTH * COLUMNS, 101));
    let [stored_a, stored_b] = [&a, &b].map(|values| {
        values.iter().map(|value| F16::new(*value).to_bits().to_le_bytes()).collect::<Vec<[u8; 2]>>()
    });
    let mut c: Vec<f32> = Vec::new();
    let bindings = Bindings::new()
        .scalar("columns", COLUMNS as u32)
        .scalar("depth", DEPTH as u32)
        .input("a", &stored_a)
        .input("b", &stored_b)
        .output_of("c", ROWS * COLUMNS, &mut c);
    let grid = [COLUMNS as u32 / BLOCK, ROWS as u32 / BLOCK, 1];
    let config = DispatchConfig { grid: Some(grid.into()), ..DispatchConfig::default() };
    Backend::acquire()?.compile(&program)?.dispatch_with(bindings, &config)?;

    // The same in double precision, and how far a device may be off.
    let mut worst: f64 = 0.0;
    for (at, found) in c.iter().enumerate() {
        let (row, column) = (at / COLUMNS, at % COLUMNS);
        let products = (0..DEPTH).map(|k| f64::from(a[row * DEPTH + k]) * f64::from(b[k * COLUMNS + column]));
        let (exact, size) = products.fold((0.0, 0.0), |(sum, size), one| (sum + one, size + one.abs()));
        let tolerance = (DEPTH as f64 + 2.0) * 2f64.powi(-22) * size;
        worst = worst.max((f64::from(*found) - exact).abs() / tolerance);
    }
    println!("the largest error is {:.1} % of the tolerance", 100.0 * worst);
    assert!(worst <= 1.0, "a result is further off than the tolerance allows");
    println!("{} elements are right", c.len());
    Ok(())
}
