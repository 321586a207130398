//! `cargo xtask check`: all checks; every failure is shown. Every step runs, also after one failed.

use std::time::{Duration, Instant};

use clap::Args;

use crate::book;
use crate::failure::{Failure, Result};
use crate::process;
use crate::test;
use crate::tidy;
use crate::workspace::Workspace;

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Leaves the tests out, if they ran just before
    #[arg(long)]
    no_tests: bool,
}

/// One of the checks.
type Step = fn(&Workspace) -> Result;

/// Runs all checks.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let mut steps: Vec<(&'static str, Step)> = vec![
        ("format", format),
        ("clippy", clippy),
        ("tidy", tidy::run),
        ("features", features),
        ("docs", docs),
        ("book", book::run),
    ];
    if !arguments.no_tests {
        steps.push(("tests", |workspace| test::run(workspace, &test::Arguments::default())));
    }
    let outcomes: Vec<Outcome> =
        steps.into_iter().map(|(name, step)| Outcome::of(name, || step(workspace))).collect();
    println!("\n{}", table(&outcomes));
    if outcomes.iter().all(|outcome| outcome.passed) { Ok(()) } else { Err(Failure::told()) }
}

fn format(workspace: &Workspace) -> Result {
    process::succeed(workspace.cargo().args(["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result {
    let flags = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "--deny", "warnings"];
    process::succeed(workspace.cargo().args(flags))
}

/// What a user may leave out: each feature of `kiln` alone, and none.
fn features(workspace: &Workspace) -> Result {
    let alone = ["clippy", "--package", "kiln", "--no-default-features", "--features"];
    for feature in ["", "sim", "isolate", "group", "program", "service"] {
        process::succeed(workspace.cargo().args(alone).args([feature, "--", "--deny", "warnings"]))?;
    }
    let left_out = ["test", "--package", "kiln", "--no-default-features", "--test", "left_out"];
    process::succeed(workspace.cargo().args(left_out))
}

fn docs(workspace: &Workspace) -> Result {
    let mut command = workspace.cargo();
    command
        .args(["doc", "--workspace", "--no-deps", "--all-features"])
        .env("RUSTDOCFLAGS", "--deny warnings");
    process::succeed(&mut command)
}

/// How one step went.
struct Outcome {
    name: &'static str,
    passed: bool,
    took: Duration,
}

impl Outcome {
    fn of(name: &'static str, step: impl FnOnce() -> Result) -> Self {
        println!("\n── {name} ──");
        let start = Instant::now();
        let result = step();
        let took = start.elapsed();
        if let Err(failure) = &result {
            eprint!("{failure}");
        }
        println!("{name}: {} in {:.1} s", verdict(result.is_ok()), took.as_secs_f64());
        Self { name, passed: result.is_ok(), took }
    }
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

fn table(outcomes: &[Outcome]) -> String {
    let lines = outcomes.iter().map(|outcome| {
        format!("{:<8} {} {:>8.1} s", outcome.name, verdict(outcome.passed), outcome.took.as_secs_f64())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_shows_in_the_table() {
        let good = Outcome::of("good", || Ok(()));
        let bad = Outcome::of("bad", || Err(Failure::new("broken")));
        let table = table(&[good, bad]);
        let lines: Vec<_> = table.lines().collect();
        assert!(
            lines[0].starts_with("good     passed") && lines[1].starts_with("bad      failed"),
            "{table}"
        );
    }
}
