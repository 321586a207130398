//! 05: a kernel written in Rust. No CUDA C, no compiler to install, no `unsafe`: a program cannot leave its buffers.
//!
//! `cargo run -p kiln --example 05_program`, with a GPU or without one.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::program::{Backend, Bindings, Program};

const LEN: usize = 1_000;

/// The same program as text, as it could stand in a file.
const TEXT: &str = "
kernel axpby(in x: f32[], inout y: f32[like x], a: f32, b: f32) block(128) over(y) {
    let i: u64 = global.x;
    y[i] = fma(a, x[i], b * y[i]);
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Values have Rust types, and so a sum of an f32 and a u32 does not compile. Threads past the end are absorbed.
    let built = Program::build("axpby", |k| {
        k.block([128, 1, 1]);
        let (x, y) = (k.input::<f32>("x"), k.in_out::<f32>("y"));
        let (a, b) = (k.scalar::<f32>("a"), k.scalar::<f32>("b"));
        y.like(x);
        k.over(y);
        let i = k.global_x();
        y.store(i, a.mul_add(x.load(i), b * y.load(i)));
    })?;
    let read = Program::parse(TEXT)?;
    println!("{built}");

    let backend = Backend::acquire()?;
    let x: Vec<f32> = (0..LEN).map(|at| at as f32).collect();
    let expected: Vec<f32> = x.iter().map(|x| 2.0f32.mul_add(*x, 0.5 * 10.0)).collect();
    for (what, program) in [("built in Rust", &built), ("read from text", &read)] {
        // Compiled once; the second time the pipeline is found.
        let pipeline = backend.compile(program)?;
        let mut y = vec![10.0f32; LEN];
        let bindings =
            Bindings::new().scalar("a", 2.0f32).scalar("b", 0.5f32).input("x", &x).in_out("y", &mut y);
        pipeline.dispatch(bindings)?;
        assert_eq!(y, expected);
        println!("{what}: {LEN} elements are right");
    }

    // What does not fit is said before anything runs, by name.
    let short = [1.0f32; 3];
    let mut y = vec![0.0f32; LEN];
    let bindings =
        Bindings::new().scalar("a", 1.0f32).scalar("b", 1.0f32).input("x", &short).in_out("y", &mut y);
    match backend.compile(&built)?.dispatch(bindings) {
        Err(refused) => println!("refused: {refused}"),
        Ok(_) => return Err("lengths that differ were accepted".into()),
    }
    Ok(())
}
