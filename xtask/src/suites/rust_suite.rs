//! The unit tests of a Rust package from the registry: copied below `target/`, built there, run by `kiln exec`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::{Failure, Result};
use crate::process;
use crate::suites::exec_run::{ExecRun, Ran};
use crate::suites::known_results::KnownResults;
use crate::suites::tally::{Outcome, Tally};
use crate::workspace::Workspace;

/// More tests than this are not run again, each alone.
const MOST_ALONE: usize = 700;

/// A package with tests.
pub(crate) struct RustSuite<'a> {
    /// The folder for its sources and what is built.
    pub(crate) home: PathBuf,
    /// Words of cargo between `test` and the end, such as features.
    pub(crate) flags: &'a [&'a str],
    /// Variables that its build looks at.
    pub(crate) build_environment: &'a [(&'a str, &'a str)],
    pub(crate) known: KnownResults,
}

impl RustSuite<'_> {
    /// Copies the sources, if they are not there, and builds the tests.
    pub(crate) fn build(&self, workspace: &Workspace, package: &Path) -> Result<PathBuf> {
        let sources = self.home.join("sources");
        if !sources.exists() {
            let partial = self.home.join("partial");
            copy(package, &partial)?;
            // Without a workspace cargo takes the folder for a part of the one around it. Nothing here is debugged.
            let manifest = partial.join("Cargo.toml");
            let text =
                fs::read_to_string(&manifest).map_err(|error| Failure::file("read", &manifest, &error))?;
            let text = format!("{text}\n[workspace]\n\n[profile.dev]\ndebug = 0\nincremental = false\n");
            fs::write(&manifest, text).map_err(|error| Failure::file("write", &manifest, &error))?;
            fs::rename(&partial, &sources).map_err(|error| Failure::file("move", &partial, &error))?;
        }
        let mut command = workspace.cargo();
        command.current_dir(&sources).env("CARGO_TARGET_DIR", self.home.join("target"));
        command.envs(self.build_environment.iter().copied());
        command
            .args(["test", "--lib", "--no-run", "--message-format", "json-render-diagnostics"])
            .args(self.flags);
        let text = process::output(command.stderr(Stdio::inherit()))?;
        let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let program =
            messages.filter_map(|message| Some(message["executable"].as_str()?.to_owned())).next_back();
        program.map(PathBuf::from).ok_or_else(|| Failure::new("cargo built no test program"))
    }

    /// Runs the tests, and what failed once more. `prepare` gives a command its environment. With several seeds, what is slow runs with the first one
    /// alone, unless words for the tests say which of them run.
    pub(crate) fn run(
        &self,
        exec: &ExecRun,
        program: &Path,
        (threads, rest): (&str, &[String]),
        prepare: impl Fn(&mut Command),
    ) -> Result {
        let once = exec.once();
        let started = |exec: &ExecRun, words: &[&str]| -> Result<Ran> {
            let mut command = exec.command(program);
            command.current_dir(self.home.join("sources"));
            prepare(&mut command);
            exec.run(command.args(words))
        };
        let slow: Vec<&str> = self.known.slow().filter(|_| exec.seeds() > 1 && rest.is_empty()).collect();
        let left_out = self.known.left_out().map(|(name, _)| name).chain(slow.iter().copied());
        let mut words = vec!["--test-threads", threads];
        words.extend(rest.iter().map(String::as_str));
        words.extend(left_out.flat_map(|name| ["--skip", name]));
        let mut runs = vec![("the tests", exec, words)];
        if !slow.is_empty() {
            let words = ["--test-threads", threads, "--exact"].into_iter().chain(slow.iter().copied());
            runs.push(("those that are slow", &once, words.collect()));
        }
        let mut tally = Tally::default();
        for (what, exec, words) in runs {
            let began = Instant::now();
            let ran = started(exec, &words)?;
            println!("{what}, with {} seeds: {:.1} s", exec.seeds(), began.elapsed().as_secs_f64());
            if ran.is_late {
                println!("{what} took too long and were told to end");
            }
            read(&ran.printed, |name, outcome| tally.add(name, outcome));
            tally.add_findings(ran.findings);
        }
        for name in tally.failed().iter().take(MOST_ALONE) {
            let exec = if slow.contains(&name.as_str()) { &once } else { exec };
            let ran = started(exec, &["--exact", name, "--test-threads=1"])?;
            let mut alone = Outcome::Failed;
            read(&ran.printed, |of, outcome| {
                if of == name.as_str() {
                    alone = outcome;
                }
            });
            tally.replace(name, if ran.is_late { Outcome::Failed } else { alone });
            tally.add_findings(ran.findings);
        }
        tally.judge(&self.known, rest.is_empty())
    }
}

/// Reads what a test program prints. A test that prints by itself separates its name from its result.
fn read(text: &str, mut add: impl FnMut(&str, Outcome)) {
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let (name, result) = match line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            Some((name, result)) => (Some(name), result),
            None => (open, line),
        };
        let outcome = match result.trim_end() {
            "ok" => Some(Outcome::Passed),
            "FAILED" => Some(Outcome::Failed),
            ignored if ignored.starts_with("ignored") => {
                let reason = ignored.strip_prefix("ignored, ").unwrap_or("marked to be ignored");
                Some(Outcome::Skipped(reason.to_owned()))
            }
            _ => None,
        };
        open = match (name, outcome) {
            (Some(name), Some(outcome)) => {
                add(name, outcome);
                None
            }
            (name, None) => name,
            (None, _) => None,
        };
    }
    if let Some(name) = open {
        // It began, and the program came to no result.
        add(name, Outcome::Failed);
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to).map_err(|error| Failure::file("create", to, &error))?;
    let entries = fs::read_dir(from).map_err(|error| Failure::file("read", from, &error))?;
    for entry in entries.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(|error| Failure::file("copy", &source, &error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_with_what_kernels_print_between() {
        let text = "running 5 tests\ntest a ... ok\ntest b ... Test value: 10.0\nok\ntest c ... FAILED\ntest d ... ignored, slow\n\
                    test result: FAILED. 2 passed\ntest e ... it ends here\n";
        let mut seen = Vec::new();
        read(text, |name, outcome| seen.push((name.to_owned(), outcome)));
        let outcomes = [
            ("a", Outcome::Passed),
            ("b", Outcome::Passed),
            ("c", Outcome::Failed),
            ("d", Outcome::Skipped("slow".into())),
            ("e", Outcome::Failed),
        ];
        assert_eq!(seen, outcomes.map(|(name, outcome)| (name.to_owned(), outcome)));
    }
}
