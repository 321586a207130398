//! `membarrier` works, and then a seccomp filter refuses it: locks still exclude each other and no thread waits for ever.
//!
//! A filter cannot be taken back, so each case runs in a process that does nothing else. This program is both: started by `cargo test`
//! it starts itself once for each case and judges what comes of it; started with [`CASE`] set it is that process.

#![allow(clippy::print_stdout, reason = "a test program reports what passed")]

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod hammer;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Write;
    use std::process::{Command, ExitCode, Stdio};
    use std::time::{Duration, Instant};

    use crate::hammer::{self, Unable};

    /// Which error the filter gives, in the environment of the helper process.
    const CASE: &str = "KILN_SYNC_REFUSE_MEMBARRIER_WITH";
    /// Exit status of a helper process that could not try.
    const UNABLE: u8 = 77;
    /// A helper process takes a second or two; one that waits for ever is ended.
    const LIMIT: Duration = Duration::from_secs(120);
    /// What it says at the end, so that one that ends early does not look as if it had passed.
    const DONE: &str = "no violation";

    const CASES: [(&str, i32); 2] = [
        ("locks_hold_when_membarrier_is_refused_with_eperm", libc::EPERM),
        ("locks_hold_when_membarrier_is_refused_with_enosys", libc::ENOSYS),
    ];

    pub(crate) fn main() -> ExitCode {
        match std::env::var(CASE).ok().and_then(|errno| errno.parse().ok()) {
            Some(errno) => helper(errno),
            None => tests(),
        }
    }

    fn helper(errno: i32) -> ExitCode {
        match hammer::run(errno) {
            Ok(wrong) if wrong.is_empty() => {
                println!("{DONE}");
                ExitCode::SUCCESS
            }
            Ok(wrong) => {
                wrong.iter().for_each(|line| println!("{line}"));
                ExitCode::FAILURE
            }
            Err(Unable::System(why)) => {
                println!("{why}");
                ExitCode::from(UNABLE)
            }
        }
    }

    /// The cases that are asked for, reported as test programs report.
    fn tests() -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
        let wanted =
            CASES.iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter.as_str())));
        let wanted: Vec<_> = wanted.collect();
        if arguments.iter().any(|argument| argument == "--list") {
            wanted.iter().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        println!("\nrunning {} tests", wanted.len());
        let mut failed = 0;
        for (name, errno) in &wanted {
            let outcome = run(name, *errno);
            println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
            if let Err(why) = outcome {
                println!("{why}");
                failed += 1;
            }
        }
        let (passed, word) = (wanted.len() - failed, if failed == 0 { "ok" } else { "FAILED" });
        println!(
            "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n"
        );
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Runs a helper process to its end and judges what it says.
    fn run(name: &str, errno: i32) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .env(CASE, errno.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the helper process was not started: {error}"))?;
        let begun = Instant::now();
        while child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if begun.elapsed() > LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("the helper process was not done after {LIMIT:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.code() {
            Some(0) if said == DONE => Ok(()),
            Some(code) if code == i32::from(UNABLE) => skip(name, &said),
            _ => Err(format!("{}: {said}", output.status)),
        }
    }

    /// Notes a case that could not be tried where the run counts them.
    fn skip(name: &str, why: &str) -> Result<(), String> {
        let Some(path) = std::env::var_os("KILN_SKIP_LOG") else { return Ok(()) };
        let log = std::fs::OpenOptions::new().append(true).create(true).open(path);
        log.and_then(|mut log| writeln!(log, "{name}: {why}")).map_err(|error| error.to_string())
    }
}
