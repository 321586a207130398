//! Elements out of range: loaded as zero, not stored, wherever the matrix lies.

use super::{bytes_of, last_buffer, numbers_of, small_integers};
use crate::rig::{Launch, interpret, simulate};
use kiln_ir::{Program, PtxTarget, ThreadOrder, Type};

const TARGETS: [u32; 3] = [70, 80, 90];

/// Runs a program with `x`, `y` and `n` everywhere; what it leaves in `y` and how many accesses are out of range.
fn run(program: &Program, x: &[u8], n: u64, dynamic_shared_bytes: u32) -> (Vec<u8>, u64) {
    let y = vec![0; 4 * 300];
    let scalars = vec![n.into()];
    let launch = Launch { grid: [1, 1, 1], dynamic_shared_bytes, scalars, buffers: vec![x.to_vec(), y] };
    let (left, out_of_range) = interpret(program, &launch, ThreadOrder::Ascending);
    let left = last_buffer(left);
    for number in TARGETS {
        let found = simulate(program, &launch, PtxTarget::new(number).unwrap(), 0);
        let found = found.unwrap_or_else(|what| panic!("{what}\n{program}"));
        assert_eq!(last_buffer(found), left, "n is {n}, as sm_{number}\n{program}");
    }
    (left, out_of_range)
}

fn halves(count: usize) -> (Vec<f64>, Vec<u8>) {
    let mut next = small_integers(21);
    let values: Vec<f64> = (0..count).map(|_| next()).collect();
    let bytes = values.iter().flat_map(|value| bytes_of(Type::F16, *value)).collect();
    (values, bytes)
}

/// The sums where `at` gives the elements of both factors by the index in `x`.
fn expected(values: &[f64], a: impl Fn(usize, usize) -> u64, b: impl Fn(usize, usize) -> u64) -> Vec<f64> {
    let at =
        |index: u64| usize::try_from(index).ok().and_then(|index| values.get(index)).copied().unwrap_or(0.0);
    let sum = |place: usize| (0..16).map(|k| at(a(place / 8, k)) * at(b(k, place % 8))).sum();
    (0..128).map(sum).collect()
}

#[test]
fn elements_of_a_buffer_out_of_range_are_zero() {
    let text = "kernel past(in x: f16[], inout y: f32[], n: u64) block(32) {
        tile sum: f32[16, 8];
        tile_multiply_add(sum, row_major x[n, 16], column_major x[n + 5, 20], 16);
        tile_store(sum, row_major y[0, 8]);
    }";
    let program = Program::parse(text).unwrap();
    let (values, bytes) = halves(200);
    for n in [0, 7, 100, 199, 200, u64::MAX, u64::MAX - 40, 1 << 32, 1 << 63] {
        let a = |row: usize, k: usize| n.wrapping_add((16 * row + k) as u64);
        let b = |k: usize, column: usize| n.wrapping_add((5 + 20 * column + k) as u64);
        let (left, out_of_range) = run(&program, &bytes, n, 0);
        assert_eq!(numbers_of(Type::F32, &left)[..128], expected(&values, a, b), "n is {n}");
        assert!(out_of_range > 0 || n == 0, "n is {n}");
    }
}

#[test]
fn elements_of_shared_memory_out_of_range_are_zero() {
    for (declared, dynamic) in [("shared s: f16[200];", 0), ("shared s: f16[];", 400)] {
        for (a, b) in [("row_major", "column_major"), ("column_major", "row_major")] {
            let text = format!(
                "kernel past(in x: f16[], inout y: f32[], n: u64) block(32) {{
                    {declared}
                    tile sum: f32[16, 8];
                    for i in lane..200 step 32 {{ s[i] = x[i]; }}
                    barrier block;
                    tile_multiply_add(sum, {a} s[n * 8, 16], {b} s[0, n * 8 + 8], 16);
                    tile_store(sum, row_major y[0, 8]);
                }}"
            );
            let program = Program::parse(&text).unwrap();
            assert!(program.emit(PtxTarget::new(90).unwrap()).text.contains("ldmatrix"), "{text}");
            let (values, bytes) = halves(200);
            for n in [0, 1, 2, 12, 24, 25, 1 << 28, 1 << 29, 1 << 60, 1 << 61] {
                let start = 8u64.wrapping_mul(n);
                let stride = start.wrapping_add(8);
                let line = |line: usize, stride: u64, within: usize| {
                    stride.wrapping_mul(line as u64).wrapping_add(within as u64)
                };
                let is_along = a == "row_major";
                let left = |row: usize, k: usize| {
                    let (at, within) = if is_along { (row, k) } else { (k, row) };
                    line(at, 16, within).wrapping_add(start)
                };
                let right = |k: usize, column: usize| {
                    let (at, within) = if is_along { (column, k) } else { (k, column) };
                    line(at, stride, within)
                };
                let (found, _) = run(&program, &bytes, n, dynamic);
                assert_eq!(numbers_of(Type::F32, &found)[..128], expected(&values, left, right), "n is {n}");
            }
        }
    }
}

#[test]
fn stores_and_loads_out_of_range_do_nothing_and_give_zero() {
    let text = "kernel past(in x: f32[], inout y: f32[], n: u64) block(32) {
        tile one: f32[16, 8];
        tile_load(one, row_major x[n, 10]);
        tile_store(one, column_major y[n, 17]);
        tile_load(one, row_major x[-5i32, 0]);
        tile_store(one, row_major y[148, 8i8]);
    }";
    let program = Program::parse(text).unwrap();
    let bytes: Vec<u8> = (1..=150).flat_map(|value| bytes_of(Type::F32, f64::from(value))).collect();
    for n in [0, 3, 140, 149, 150, 1 << 40, u64::MAX - 3] {
        let (left, out_of_range) = run(&program, &bytes, n, 0);
        let element = |row: usize, column: usize| {
            let index = n.wrapping_add((10 * row + column) as u64);
            if index < 150 { index as f64 + 1.0 } else { 0.0 }
        };
        let mut wanted = vec![0.0; 300];
        for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let index = n.wrapping_add((17 * column + row) as u64);
            if let Some(slot) = usize::try_from(index).ok().and_then(|index| wanted.get_mut(index)) {
                *slot = element(row, column);
            }
        }
        for at in 0..128 {
            // Every row is the same: the five elements before `x`, which are not there, and its first three.
            wanted[148 + at] = if at % 8 < 5 { 0.0 } else { (at % 8 - 4) as f64 };
        }
        assert_eq!(numbers_of(Type::F32, &left), wanted, "n is {n}");
        assert!(out_of_range >= 16 * 5, "n is {n}");
    }
}
