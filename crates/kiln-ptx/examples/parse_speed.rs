//! How fast PTX is read, and that the time grows with the text and not faster.
//!
//! `cargo run --release -p kiln-ptx --example parse_speed [FILE.ptx ...]`
//!
//! Without files it reads modules made of many copies of compiled kernels, from 1 MB to 32 MB.

// A measurement has nothing to do but print.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::{Duration, Instant};

use kiln_ptx::PtxModule;

/// Each text is read as often as fits in this time, and the fastest run counts.
const TIME_PER_TEXT: Duration = Duration::from_millis(1500);

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        for megabytes in [1, 4, 16, 32] {
            measure(&format!("{megabytes} MB of kernels"), &many_kernels(megabytes * 1_000_000))?;
        }
    }
    for file in files {
        measure(&file, &std::fs::read_to_string(&file)?)?;
    }
    Ok(())
}

fn measure(what: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let mut best = Duration::MAX;
    let mut instructions = 0;
    while started.elapsed() < TIME_PER_TEXT {
        let run = Instant::now();
        let module = PtxModule::parse(text)?;
        best = best.min(run.elapsed());
        let bodies = module.functions().iter().filter_map(|function| function.body.as_ref());
        instructions = bodies.map(|body| body.instructions().len()).sum();
    }
    let speed = text.len() as f64 / 1e6 / best.as_secs_f64();
    println!("{what}: {} bytes, {instructions} instructions in {best:.1?}: {speed:.0} MB/s", text.len());
    Ok(())
}

/// A module of at least `bytes` bytes: kernels of several kinds, over and over under new names.
fn many_kernels(bytes: usize) -> String {
    let sources = [
        include_str!("../tests/data/shared.ptx"),
        include_str!("../tests/data/numbers.ptx"),
        include_str!("../tests/data/elementwise.ptx"),
    ];
    let kernels: Vec<&str> = sources.iter().flat_map(|source| entries(source)).collect();
    let mut text = String::from(".version 9.0\n.target sm_90\n.address_size 64\n");
    text.push_str(".extern .shared .align 16 .b8 reversed[];\n");
    let mut copy = 0;
    while text.len() < bytes {
        for kernel in &kernels {
            let name = kernel.split(['(', ' ']).nth(2).unwrap_or("");
            let (head, body) = kernel.split_once(name).unwrap_or((kernel, ""));
            text.push_str(&format!("{head}k{copy}_{name}{body}"));
            copy += 1;
        }
    }
    text
}

/// The entries of a module that stand on their own: those that name no variable of the module.
fn entries(source: &str) -> Vec<&str> {
    let parts = source
        .split_inclusive("\n\n}\n")
        .filter_map(|part| part.find(".visible .entry").map(|at| &part[at..]));
    parts
        .filter(|part| !part.contains("call") && !part.contains("_table") && !part.contains("__cudart"))
        .collect()
}
