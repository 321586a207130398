//! `cargo xtask test`: every unit, integration and doc test, and the totals.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;

use crate::browser;
use crate::failure::{Failure, Result};
use crate::models::{self, CHECKERS};
use crate::process;
use crate::skips::{self, SkipLog};
use crate::toolkit::{Search, Toolkit};
use crate::totals::Totals;
use crate::trace_reader;
use crate::workspace::Workspace;

/// What can be said on the command line.
#[derive(Args, Default)]
pub(crate) struct Arguments {
    /// Tests of this package only; may be given again
    #[arg(short, long, value_name = "NAME")]
    package: Vec<String>,
    /// Handed to every test binary, such as a part of a test's name
    #[arg(last = true)]
    rest: Vec<OsString>,
}

impl Arguments {
    /// Whether the tests under model checkers are among those asked for.
    fn has_models(&self) -> bool {
        self.package.is_empty() || self.package.iter().any(|name| name == models::PACKAGE)
    }

    /// Whether any others are.
    fn has_others(&self) -> bool {
        self.package.is_empty() || self.package.iter().any(|name| name != models::PACKAGE)
    }

    /// Whether those of a package are.
    fn has(&self, package: &str) -> bool {
        self.package.is_empty() || self.package.iter().any(|name| name == package)
    }
}

/// The package whose tests open a browser.
const BROWSER_PACKAGE: &str = "kiln-watch";

/// The package whose tests read traces with Perfetto's schema.
const TRACE_PACKAGE: &str = "kiln-trace";

/// What the tests need of the machine.
struct Tools {
    toolkit: Toolkit,
    /// None if no test needs it, or if there is none.
    browser: Option<PathBuf>,
    /// The same.
    trace_reader: Option<PathBuf>,
}

impl Tools {
    fn find_or_fetch(workspace: &Workspace, arguments: &Arguments) -> Result<Self> {
        Ok(Self {
            toolkit: Toolkit::find_or_fetch(&workspace.target, Search::Everywhere)?,
            browser: arguments
                .has(BROWSER_PACKAGE)
                .then(|| browser::find_or_fetch(&workspace.target))
                .flatten(),
            trace_reader: arguments
                .has(TRACE_PACKAGE)
                .then(|| trace_reader::find_or_fetch(&workspace.target))
                .flatten(),
        })
    }

    fn set_environment(&self, command: &mut Command) {
        self.toolkit.set_environment(command);
        browser::set_environment(self.browser.as_deref(), command);
        trace_reader::set_environment(self.trace_reader.as_deref(), command);
    }

    /// What is missing that the tests cannot do without. A browser and the reader of traces are not: their tests are listed as skipped where their registries are out of reach.
    fn missing(&self) -> Vec<&'static str> {
        self.toolkit.missing()
    }
}

/// Builds and runs the tests.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let tools = Tools::find_or_fetch(workspace, arguments)?;
    let commands = || {
        let plain = arguments.has_others().then(|| cargo_test(workspace, arguments, &tools));
        let checkers = CHECKERS.iter().filter(|_| arguments.has_models());
        plain.into_iter().chain(checkers.map(|checker| checker.cargo_test(workspace)))
    };
    for mut build in commands() {
        process::succeed(build.arg("--no-run"))
            .map_err(|_| Failure::new("the tests did not build; the compiler's messages are above"))?;
    }

    let log = SkipLog::create(&workspace.target)?;
    let (mut totals, mut succeeded) = (Totals::default(), true);
    for mut command in commands() {
        // Code that the tests compile is not kept among the user's own.
        command.env("XDG_CACHE_HOME", workspace.target.join("test-cache"));
        command.env(skips::VARIABLE, log.path()).args(["--no-fail-fast", "--"]).args(&arguments.rest);
        let (more, all_passed) = stream(&mut command)?;
        totals.add(more);
        succeeded &= all_passed;
    }
    let skips = log.read()?;
    let unstable = if totals.died() == 0 && !totals.failures.is_empty() {
        run_again(workspace, arguments, &tools, &totals.failures)?
    } else {
        Vec::new()
    };
    let verdict = Verdict { totals, succeeded, unstable, skips, missing: tools.missing() };
    verdict.report(is_ci())
}

/// Runs the failed tests once more, one at a time. Returns those that pass now: their result depends on how busy the machine is.
fn run_again(
    workspace: &Workspace,
    arguments: &Arguments,
    tools: &Tools,
    failures: &[String],
) -> Result<Vec<String>> {
    if !arguments.has_others() {
        return Ok(Vec::new());
    }
    println!("\nrunning the failed tests again, one at a time");
    let mut command = cargo_test(workspace, arguments, tools);
    command.env("XDG_CACHE_HOME", workspace.target.join("test-cache"));
    command.args(["--no-fail-fast", "--", "--exact", "--test-threads=1"]).args(failures);
    let (again, _) = stream(&mut command)?;
    Ok(passed_again(failures, &again))
}

/// The tests that failed and now passed: none unless the second run accounts for every one of them.
fn passed_again(failures: &[String], again: &Totals) -> Vec<String> {
    if again.died() > 0 || again.passed + again.failed < failures.len() {
        return Vec::new();
    }
    failures.iter().filter(|&name| !again.failures.contains(name)).cloned().collect()
}

fn cargo_test(workspace: &Workspace, arguments: &Arguments, tools: &Tools) -> Command {
    let mut command = workspace.cargo();
    command.args(["test", "--all-features"]);
    if arguments.package.is_empty() {
        command.arg("--workspace");
    }
    command.args(arguments.package.iter().flat_map(|name| ["--package", name]));
    tools.set_environment(&mut command);
    command
}

/// Runs the tests, shows what they print as they print it, and adds the results up.
pub(crate) fn stream(command: &mut Command) -> Result<(Totals, bool)> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| process::not_started(command, &error))?;
    let mut totals = Totals::default();
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        // Bytes, because a test may print what is not UTF-8.
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            // A closed terminal must not end the tests.
            let _ = std::io::stdout().write_all(&line);
            totals.read_line(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    let status = child.wait().map_err(|error| process::not_started(command, &error))?;
    Ok((totals, status.success()))
}

fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// Everything the last lines are made from.
struct Verdict {
    totals: Totals,
    succeeded: bool,
    /// Failed tests that passed when they ran again alone.
    unstable: Vec<String>,
    skips: Vec<String>,
    missing: Vec<&'static str>,
}

impl Verdict {
    /// Prints what failed and what was skipped, the totals last.
    fn report(&self, ci: bool) -> Result {
        println!();
        for line in &self.skips {
            println!("skipped: {line}");
        }
        for line in &self.totals.printed {
            println!("  {line}");
        }
        for name in &self.totals.failures {
            if self.unstable.contains(name) {
                println!("unstable: {name} failed, and passed when it ran again alone");
            } else {
                println!("failed: {name}");
            }
        }
        if self.totals.died() > 0 {
            println!("failed: {} test binaries ended without a result", self.totals.died());
        }
        let missing = self.missing.join(", ");
        if !missing.is_empty() {
            let also = if ci { ", and with CI=true that is a failure" } else { "" };
            println!("missing: {missing}; the tests that need it were skipped{also}");
        }
        println!("{}", self.line());
        let accepted = self.failed() == 0 && (missing.is_empty() || !ci);
        if accepted { Ok(()) } else { Err(Failure::told()) }
    }

    /// The totals on one line.
    fn line(&self) -> String {
        let skipped = self.skips.len() + self.totals.ignored;
        let passed = self.totals.passed.saturating_sub(self.skips.len()) + self.unstable.len();
        let unstable = if self.unstable.is_empty() {
            String::new()
        } else {
            format!(", {} unstable", self.unstable.len())
        };
        format!("{passed} passed, {} failed, {skipped} skipped{unstable}", self.failed())
    }

    /// Failures, with at least one if cargo says that something failed and no failed test explains it.
    fn failed(&self) -> usize {
        let counted = self.totals.failed + self.totals.died();
        let explained = self.succeeded || counted > 0;
        counted.max(usize::from(!explained)) - self.unstable.len().min(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(lines: &[&str], succeeded: bool) -> Verdict {
        let mut totals = Totals::default();
        lines.iter().for_each(|line| totals.read_line(line));
        Verdict { totals, succeeded, unstable: Vec::new(), skips: Vec::new(), missing: Vec::new() }
    }

    const GOOD: [&str; 2] = ["running 5 tests", "test result: ok. 5 passed; 0 failed; 0 ignored"];

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let verdict = Verdict { skips: vec!["a: no GPU".into(), "b: no GPU".into()], ..verdict(&GOOD, true) };
        assert_eq!(verdict.line(), "3 passed, 0 failed, 2 skipped");
        assert!(verdict.report(true).is_ok());
    }

    #[test]
    fn a_dead_binary_fails_the_run() {
        let verdict = verdict(&["running 5 tests"], true);
        assert_eq!(verdict.line(), "0 passed, 1 failed, 0 skipped");
        assert!(verdict.report(false).is_err());
    }

    #[test]
    fn cargo_has_the_last_word() {
        let verdict = verdict(&GOOD, false);
        assert_eq!(verdict.line(), "5 passed, 1 failed, 0 skipped");
        assert!(verdict.report(false).is_err());
    }

    const BAD: [&str; 3] =
        ["running 5 tests", "test a ... FAILED", "test result: FAILED. 4 passed; 1 failed; 0 ignored"];

    #[test]
    fn a_test_that_passes_alone_is_unstable_and_told() {
        let failures = ["a".to_owned()];
        let again = |lines: &[&str]| passed_again(&failures, &verdict(lines, true).totals);
        assert_eq!(again(&["running 1 test", "test result: ok. 1 passed; 0 failed"]), failures);
        let verdict = Verdict { unstable: failures.to_vec(), ..verdict(&BAD, false) };
        assert_eq!(verdict.line(), "5 passed, 0 failed, 0 skipped, 1 unstable");
        assert!(verdict.report(true).is_ok());
    }

    #[test]
    fn a_test_that_fails_again_or_does_not_run_again_has_failed() {
        let failures = ["a".to_owned()];
        let again = |lines: &[&str]| passed_again(&failures, &verdict(lines, true).totals);
        assert!(
            again(&["running 1 test", "test a ... FAILED", "test result: FAILED. 0 passed; 1 failed"])
                .is_empty()
        );
        assert!(again(&["running 1 test"]).is_empty());
        assert!(again(&[]).is_empty());
        assert!(verdict(&BAD, false).report(false).is_err());
    }

    #[test]
    fn what_is_missing_fails_only_where_nothing_may_be_skipped() {
        let verdict = Verdict { missing: vec!["NVRTC"], ..verdict(&GOOD, true) };
        assert!(verdict.report(false).is_ok());
        assert!(verdict.report(true).is_err());
    }
}
