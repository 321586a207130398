//! Several processes that share the texts. A process that dies takes no other with it, and the number of the text that it worked on is known.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use crate::totals::Totals;

/// What one process did.
struct Ended {
    totals: Option<Totals>,
    last: Option<u64>,
    status: String,
}

/// Feeds texts 0 to `end` from as many processes; what they counted together, or what went wrong in each.
pub(crate) fn share(jobs: u64, end: u64, seed: u64, files: &[String]) -> Result<Totals, Vec<String>> {
    let ended: Vec<Result<Ended, String>> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..jobs).map(|first| scope.spawn(move || work(first, jobs, end, seed, files))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("panicked".to_owned())))
            .collect()
    });
    let (mut totals, mut wrong) = (Totals::default(), Vec::new());
    for ended in ended {
        match ended {
            Ok(Ended { totals: Some(part), .. }) => totals.add(&part),
            Ok(Ended { last, status, .. }) => {
                let at = last.map_or("before its first text".to_owned(), |text| format!("at text {text}"));
                wrong.push(format!("seed {seed}: a process ended {at} with {status}"));
            }
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() { Ok(totals) } else { Err(wrong) }
}

fn work(first: u64, step: u64, end: u64, seed: u64, files: &[String]) -> Result<Ended, String> {
    let failed = |error: std::io::Error| format!("cannot run a process: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let numbers = [first, step, end, seed].map(|number| number.to_string());
    let mut child = Command::new(program)
        .arg("--worker")
        .args(&numbers)
        .args(files)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (mut last, mut totals) = (None, None);
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            match line.strip_prefix("text ") {
                Some(number) => last = number.parse().ok(),
                None => totals = Totals::read(&line).or(totals),
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    Ok(Ended { totals: totals.filter(|_| status.success()), last, status: status.to_string() })
}
