//! Feeds damaged PTX to the reader and the executor: nothing may panic, hang, take too much time or memory, or change on the way through print, and every entry of
//! what is still PTX is launched with every check.
//!
//! `cargo run --release -p kiln-ptx --example fuzz_parse -- [SECONDS [SEED]]` until time is up, or
//! `… -- --texts COUNT JOBS SEED [FILE…]` for so many texts in so many processes, made of the files of the tests and further ones.
//!
//! The same seed gives the same texts. A failure prints the seed and the number of the text, saves the text beside the
//! program's working directory, and exits with 1.

// A tool that runs by itself has to say what it did.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod damage;
mod examine;
mod resources;
mod totals;
mod watchdog;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use damage::Texts;
use examine::{Examined, examine};
use resources::{forget_peak, peak_memory};
use totals::Totals;
use watchdog::{MEMORY_LIMIT_BYTES, Watchdog};

/// Processor time to read, print and analyse a text: so much, and so much for each byte.
const READING_NANOS: u64 = 100_000_000;
const READING_NANOS_PER_BYTE: u64 = 5_000;

/// What can be said on the command line.
enum Request {
    /// Until time is up, or a part of the texts for the process that started this one.
    Feed(Plan),
    /// So many texts in so many processes.
    Share { texts: u64, jobs: u64, seed: u64, files: Vec<String> },
}

/// Which texts to make.
struct Plan {
    seed: u64,
    first: u64,
    step: u64,
    end: u64,
    time: Duration,
    /// Whether another process started this one: then the number of each text is printed before it is read, so that a process that dies has told it.
    is_worker: bool,
    files: Vec<String>,
}

impl Request {
    fn of(words: &[String]) -> Option<Self> {
        let number = |word: &String| word.parse::<u64>().ok();
        let until = |seconds: u64, seed: u64| {
            let (time, files) = (Duration::from_secs(seconds), Vec::new());
            Self::Feed(Plan { seed, first: 0, step: 1, end: u64::MAX, time, is_worker: false, files })
        };
        Some(match words {
            [] => until(10, 1),
            [flag, texts, jobs, seed, files @ ..] if flag == "--texts" => Self::Share {
                texts: number(texts)?,
                jobs: number(jobs)?.max(1),
                seed: number(seed)?,
                files: files.to_vec(),
            },
            [flag, first, step, end, seed, files @ ..] if flag == "--worker" => Self::Feed(Plan {
                seed: number(seed)?,
                first: number(first)?,
                step: number(step)?.max(1),
                end: number(end)?,
                time: Duration::MAX,
                is_worker: true,
                files: files.to_vec(),
            }),
            [seconds] => until(number(seconds)?, 1),
            [seconds, seed] => until(number(seconds)?, number(seed)?),
            _ => return None,
        })
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Request::of(&words) {
        Some(Request::Feed(plan)) => feed_plan(&plan),
        Some(Request::Share { texts, jobs, seed, files }) => {
            match workers::share(jobs, texts, seed, &files) {
                Ok(totals) => {
                    println!("seed {seed}: {totals}");
                    ExitCode::SUCCESS
                }
                Err(wrong) => {
                    wrong.iter().for_each(|line| eprintln!("{line}"));
                    ExitCode::FAILURE
                }
            }
        }
        None => {
            eprintln!(
                "usage: fuzz_parse [SECONDS [SEED]] or fuzz_parse --texts COUNT JOBS SEED [FILE…]; all but files are whole numbers"
            );
            ExitCode::from(2)
        }
    }
}

fn feed_plan(plan: &Plan) -> ExitCode {
    let mut further = Vec::new();
    for file in &plan.files {
        match std::fs::read(file) {
            Ok(bytes) => further.push(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    let texts = Arc::new(Texts::new(plan.seed, further));
    match feed(plan, &texts) {
        Ok(totals) if plan.is_worker => println!("{}", totals.line()),
        Ok(totals) => println!("seed {}: {totals}", plan.seed),
        Err((number, what)) => {
            tell(&texts, plan.seed, number, &what);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Feeds texts until there are enough, or time is up; the first that fails, and what is wrong.
fn feed(plan: &Plan, texts: &Arc<Texts>) -> Result<Totals, (u64, String)> {
    let (started, mut totals) = (Instant::now(), Totals::default());
    let (watched, seed) = (Arc::clone(texts), plan.seed);
    let watchdog = Watchdog::start(move |number, what| {
        tell(&watched, seed, number, what);
        std::process::exit(1);
    });
    let mut number = plan.first;
    while number < plan.end && started.elapsed() < plan.time {
        if plan.is_worker {
            println!("text {number}");
        }
        let text = texts.damaged(number);
        forget_peak();
        watchdog.begin(number);
        let examined = catch_unwind(AssertUnwindSafe(|| examine(&text)));
        let examined =
            examined.unwrap_or_else(|_| Err("panicked".to_owned())).map_err(|what| (number, what))?;
        let memory = peak_memory();
        check_limits(&text, &examined, memory).map_err(|what| (number, what))?;
        totals.texts += 1;
        totals.accepted += u64::from(examined.is_ptx);
        totals.launched += examined.launched;
        totals.memory = totals.memory.max(memory);
        totals.reading = totals.reading.max(examined.reading);
        number = number.saturating_add(plan.step);
    }
    Ok(totals)
}

fn check_limits(text: &str, examined: &Examined, memory: u64) -> Result<(), String> {
    let limit = READING_NANOS + READING_NANOS_PER_BYTE * text.len() as u64;
    if examined.reading > limit {
        let (took, limit) = (examined.reading / 1_000_000, limit / 1_000_000);
        return Err(format!("took {took} ms to read, and {} bytes may take {limit} ms", text.len()));
    }
    if memory > MEMORY_LIMIT_BYTES {
        return Err(format!(
            "took {} MiB of memory, and may take {}",
            memory >> 20,
            MEMORY_LIMIT_BYTES >> 20
        ));
    }
    Ok(())
}

/// Says what is wrong with a text, and saves it.
fn tell(texts: &Texts, seed: u64, number: u64, what: &str) {
    eprintln!("seed {seed}, text {number}: {what}");
    let file = format!("fuzz-parse-{seed}-{number}.ptx");
    match std::fs::write(&file, texts.damaged(number)) {
        Ok(()) => eprintln!("saved as {file}"),
        Err(error) => eprintln!("cannot save {file}: {error}"),
    }
}
