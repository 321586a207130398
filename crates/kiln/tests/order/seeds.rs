//! Runs the order's random programs for a range of seeds on all cores; `cargo xtask sim` starts it.
//!
//! A seed decides the program, when events are recorded, and whether several threads submit. What a failing seed showed is printed with
//! the command that repeats it; the last line is `N passed, N failed`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "this is a test with a command line"
)]

mod kernels;
mod library;
#[allow(dead_code, reason = "what takes a rule out is for the tests of the tests")]
mod program;
#[path = "../../../kiln-ir/tests/generate/seed_range.rs"]
mod seed_range;

use std::process::ExitCode;

use kiln::order::Recording;
use program::{Outcome, run, run_threads};
use seed_range::SeedRange;

const STEPS: usize = 40;
const THREADS: usize = 3;
/// Every so many seeds several threads submit; such a program costs several times as much.
const THREADED_EVERY: u64 = 16;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(from)), Some(Ok(count)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        println!("usage: order_seeds FIRST_SEED COUNT");
        return ExitCode::from(2);
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let repeat = |seed| format!("cargo xtask sim --from {seed} --seeds 1");
    SeedRange { from, count, workers }.run(repeat, |seed| {
        let outcome = run_seed(seed);
        if outcome.is_clean() { Ok(()) } else { Err(outcome.to_string()) }
    })
}

fn run_seed(seed: u64) -> Outcome {
    if seed % THREADED_EVERY == THREADED_EVERY - 1 {
        return run_threads(seed, THREADS, STEPS / 2);
    }
    let recording = match seed % 4 {
        0 | 1 => Recording::Adaptive,
        2 => Recording::OnDemand,
        _ => Recording::AtOnce,
    };
    run(seed, STEPS, recording, None)
}
