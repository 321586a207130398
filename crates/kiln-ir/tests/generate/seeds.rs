//! Runs random programs on the interpreter and, as PTX, on the executor; `cargo xtask differential` starts it.
//!
//! What a failing seed showed is printed with the command that repeats it; the last line is `N passed, N failed`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "this is a test with a command line"
)]

#[path = "mod.rs"]
mod generate;
#[path = "../rig/mod.rs"]
mod rig;
mod seed_range;

use std::process::ExitCode;

use generate::examine::examine;
use seed_range::SeedRange;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(from)), Some(Ok(count)), Some(Ok(workers)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        println!("usage: program_seeds FIRST_SEED COUNT WORKERS");
        return ExitCode::from(2);
    };
    let repeat = |seed| format!("cargo xtask differential --from {seed} --programs 1");
    SeedRange { from, count, workers }.run(repeat, examine)
}
