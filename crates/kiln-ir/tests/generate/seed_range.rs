//! A range of seeds on several threads, with a bar while it runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// Failures that are printed in full.
const MAX_PRINTED: usize = 10;
/// Seeds a worker takes at once.
const BATCH: u64 = 64;

/// Which seeds, and on how many threads.
pub(crate) struct SeedRange {
    pub(crate) from: u64,
    pub(crate) count: u64,
    pub(crate) workers: u64,
}

impl SeedRange {
    /// Examines every seed. What a failing one showed is printed with the command that repeats it; the last line is
    /// `N passed, N failed`.
    pub(crate) fn run(
        &self,
        repeat: impl Fn(u64) -> String,
        examine: impl Fn(u64) -> Result<(), String> + Sync,
    ) -> ExitCode {
        let start = Instant::now();
        let failed = self.failed(&examine);
        for (seed, what) in failed.iter().take(MAX_PRINTED) {
            println!("seed {seed}: {what}\n  repeat with: {}\n", repeat(*seed));
        }
        if failed.len() > MAX_PRINTED {
            let rest: Vec<String> =
                failed.iter().skip(MAX_PRINTED).map(|(seed, _)| seed.to_string()).collect();
            println!("also failed: {}", rest.join(" "));
        }
        println!("seeds {} to {}, {:.0} s", self.from, self.end(), start.elapsed().as_secs_f64());
        println!("{} passed, {} failed", self.end() - self.from - failed.len() as u64, failed.len());
        if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn end(&self) -> u64 {
        self.from.saturating_add(self.count)
    }

    /// The seeds that failed, in order, with what they showed.
    fn failed(&self, examine: &(impl Fn(u64) -> Result<(), String> + Sync)) -> Vec<(u64, String)> {
        let end = self.end();
        let bar = ProgressBar::new(end - self.from);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} seeds, {per_sec}, {eta} left{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (next, failed) = (AtomicU64::new(self.from), Mutex::new(Vec::new()));
        let work = || {
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= end {
                    return;
                }
                let batch = first..end.min(first + BATCH);
                bar.inc(batch.end - batch.start);
                for (seed, what) in batch.filter_map(|seed| Some((seed, failure(seed, examine)?))) {
                    let mut failed = failed.lock().unwrap();
                    failed.push((seed, what));
                    bar.set_message(format!(", {} failed", failed.len()));
                }
            }
        };
        std::thread::scope(|scope| (0..self.workers).for_each(|_| drop(scope.spawn(work))));
        bar.finish_and_clear();
        let mut failed = failed.into_inner().unwrap();
        failed.sort_unstable();
        failed
    }
}

/// What a seed showed, if it failed.
fn failure(seed: u64, examine: &impl Fn(u64) -> Result<(), String>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| examine(seed))) {
        Ok(done) => done.err(),
        Err(_) => Some("it panicked; the message is above".to_owned()),
    }
}
