//! Runs random kernels in the ways that are fast and lane by lane until time is up, on all cores: memory, findings, notes, counts, statistics and undefined
//! values must be the same.
//!
//! `cargo run --release -p kiln-ptx --example compare_executors -- [SECONDS [SEED [KERNELS]]]`
//!
//! Kernels are those of the seeds from SEED on, at most KERNELS of them. The last line has the totals. A difference is printed with its seed, and the
//! program exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::panic)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use random_kernel::RandomLaunch;

#[path = "../tests/suite/both_ways.rs"]
mod both_ways;
#[path = "../tests/suite/random_kernel.rs"]
mod random_kernel;

/// Differences after which it stops.
const MOST_DIFFERENCES: u64 = 5;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |default: u64| numbers.next().map_or(Ok(default), |number| number);
    let (Ok(seconds), Ok(seed), Ok(kernels)) = (number(10), number(1), number(u64::MAX)) else {
        eprintln!("usage: compare_executors [SECONDS [SEED [KERNELS]]]");
        return ExitCode::FAILURE;
    };
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (next, same, different) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        while start.elapsed() < limit && different.load(Ordering::Relaxed) < MOST_DIFFERENCES {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= kernels {
                return;
            }
            let seed = seed.wrapping_add(at);
            match RandomLaunch::new(seed).compare(seed) {
                Ok(()) => same.fetch_add(1, Ordering::Relaxed),
                Err(difference) => {
                    println!("{difference}");
                    different.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let finished = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).filter(Result::is_ok).count() == cores
    });
    let (same, different) = (same.into_inner(), different.into_inner());
    println!(
        "{same} kernels the same, {different} different, five pairs of launches each, from seed {seed}, {cores} cores, {:.0} s",
        start.elapsed().as_secs_f64()
    );
    if finished && different == 0 && same > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
