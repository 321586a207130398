//! Runs random kernels in the ways that are fast and lane by lane until time is up, on all cores: memory, findings, notes, counts, statistics and undefined
//! values must be the same.
//!
//! `cargo run --release -p kiln-ptx --example compare_executors -- [SECONDS [SEED [KERNELS]]]`
//!
//! Kernels are those of the seeds from SEED on, at most KERNELS of them. It prints how far it is every ten seconds, and totals in the last line. A
//! difference is printed with its seed, and the program exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::panic)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use random_kernel::RandomLaunch;

#[path = "../tests/suite/both_ways.rs"]
mod both_ways;
#[path = "../tests/suite/random_kernel.rs"]
mod random_kernel;

/// Differences after which it stops.
const MOST_DIFFERENCES: u64 = 5;
/// How often it says how far it is.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// What the threads share.
struct Run {
    start: Instant,
    limit: Duration,
    seed: u64,
    kernels: u64,
    next: AtomicU64,
    same: AtomicU64,
    different: AtomicU64,
}

impl Run {
    /// Compares kernels until time is up or none is left.
    fn work(&self) {
        while self.start.elapsed() < self.limit && self.different.load(Ordering::Relaxed) < MOST_DIFFERENCES {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            if at >= self.kernels {
                return;
            }
            let seed = self.seed.wrapping_add(at);
            let compared = std::panic::catch_unwind(|| RandomLaunch::new(seed).compare(seed));
            match compared.unwrap_or_else(|_| Err(format!("seed {seed}: panicked"))) {
                Ok(()) => self.same.fetch_add(1, Ordering::Relaxed),
                Err(difference) => {
                    println!("{difference}");
                    self.different.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
    }

    /// Kernels that were the same, and those that were not.
    fn counts(&self) -> (u64, u64) {
        (self.same.load(Ordering::Relaxed), self.different.load(Ordering::Relaxed))
    }

    /// How far it is.
    fn line(&self) -> String {
        let ((same, different), seconds) = (self.counts(), self.start.elapsed().as_secs_f64());
        let done = same + different;
        format!(
            "{same} kernels the same, {different} different, {seconds:.0} s, {:.0} a second",
            done as f64 / seconds
        )
    }
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |default: u64| numbers.next().map_or(Ok(default), |number| number);
    let (Ok(seconds), Ok(seed), Ok(kernels)) = (number(10), number(1), number(u64::MAX)) else {
        eprintln!("usage: compare_executors [SECONDS [SEED [KERNELS]]]");
        return ExitCode::FAILURE;
    };
    // glibc keeps as much freed memory from here on as the largest block that was freed has, and need not ask the kernel for it again.
    drop(std::hint::black_box(vec![1u8; 24 << 20]));
    let run = Run {
        start: Instant::now(),
        limit: Duration::from_secs(seconds),
        seed,
        kernels,
        next: AtomicU64::new(0),
        same: AtomicU64::new(0),
        different: AtomicU64::new(0),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (working, idle) = channel::<()>();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            let (run, working): (&Run, Sender<()>) = (&run, working.clone());
            scope.spawn(move || {
                run.work();
                drop(working);
            });
        }
        drop(working);
        while idle.recv_timeout(BETWEEN_LINES) == Err(RecvTimeoutError::Timeout) {
            println!("{}", run.line());
        }
    });
    println!("{}, five pairs of launches each, from seed {seed}, {cores} cores", run.line());
    let (same, different) = run.counts();
    if different == 0 && same > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
