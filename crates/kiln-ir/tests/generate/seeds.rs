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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use generate::examine::examine;
use indicatif::{ProgressBar, ProgressStyle};

/// Failures that are printed in full.
const MAX_PRINTED: usize = 10;
/// Seeds a worker takes at once.
const BATCH: u64 = 64;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(from)), Some(Ok(count)), Some(Ok(workers)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        println!("usage: program_seeds FIRST_SEED COUNT WORKERS");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let end = from.saturating_add(count);
    let failed = run_all(from, end, workers);
    for (seed, what) in failed.iter().take(MAX_PRINTED) {
        println!("seed {seed}: {what}\n  repeat with: cargo xtask differential --from {seed} --programs 1\n");
    }
    if failed.len() > MAX_PRINTED {
        let rest: Vec<String> = failed.iter().skip(MAX_PRINTED).map(|(seed, _)| seed.to_string()).collect();
        println!("also failed: {}", rest.join(" "));
    }
    println!("seeds {from} to {end}, {:.0} s", start.elapsed().as_secs_f64());
    println!("{} passed, {} failed", count - failed.len() as u64, failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The seeds that failed, in order, with what they showed.
fn run_all(from: u64, end: u64, workers: u64) -> Vec<(u64, String)> {
    let bar = ProgressBar::new(end - from);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} programs, {per_sec}, {eta} left{msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let (next, failed) = (AtomicU64::new(from), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= end {
                return;
            }
            let batch = first..end.min(first + BATCH);
            bar.inc(batch.end - batch.start);
            for (seed, what) in batch.filter_map(|seed| Some((seed, failure(seed)?))) {
                let mut failed = failed.lock().unwrap();
                failed.push((seed, what));
                bar.set_message(format!(", {} failed", failed.len()));
            }
        }
    };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    failed
}

/// What a seed showed, if it failed.
fn failure(seed: u64) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| examine(seed))) {
        Ok(done) => done.err(),
        Err(_) => Some("it panicked; the message is above".to_owned()),
    }
}
