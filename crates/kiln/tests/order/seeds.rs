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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use kiln::order::Recording;
use program::{Outcome, run, run_threads};

const STEPS: usize = 40;
const THREADS: usize = 3;
/// Every so many seeds several threads submit; such a program costs several times as much.
const THREADED_EVERY: u64 = 16;
/// Failures that are printed in full.
const MAX_PRINTED: usize = 10;
/// Seeds a worker takes at once.
const BATCH: u64 = 64;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(from)), Some(Ok(count)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        println!("usage: order_seeds FIRST_SEED COUNT");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let failed = run_all(from, from.saturating_add(count));
    for (seed, what) in failed.iter().take(MAX_PRINTED) {
        println!("seed {seed}: {what}\n  repeat with: cargo xtask sim --from {seed} --seeds 1\n");
    }
    if failed.len() > MAX_PRINTED {
        let rest: Vec<String> = failed.iter().skip(MAX_PRINTED).map(|(seed, _)| seed.to_string()).collect();
        println!("also failed: {}", rest.join(" "));
    }
    println!("seeds {from} to {}, {:.0} s", from.saturating_add(count), start.elapsed().as_secs_f64());
    println!("{} passed, {} failed", count - failed.len() as u64, failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The seeds that failed, in order, with what they showed.
fn run_all(from: u64, end: u64) -> Vec<(u64, String)> {
    let bar = ProgressBar::new(end - from);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} seeds, {per_sec}, {eta} left{msg}");
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
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    failed
}

/// What a seed showed, if it failed.
fn failure(seed: u64) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| run_seed(seed))) {
        Ok(outcome) => (!outcome.is_clean()).then(|| outcome.to_string()),
        Err(_) => Some("it panicked; the message is above".into()),
    }
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
