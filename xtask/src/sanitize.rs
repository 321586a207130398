//! `cargo xtask sanitize`: the parts without a driver, run under a tool that sees what a test cannot.
//!
//! Most of the unsafe code here is small and is exercised by ordinary tests, which notice a wrong result and not a read of memory that was
//! freed a moment ago. AddressSanitizer sees that, ThreadSanitizer sees two threads at one place without an order between them, and miri
//! sees every step that the language does not define. Each is a [`Tool`] with its own build; what runs under it is a list of [`Part`]s.
//!
//! A toolchain that lacks miri or the source of the standard library is given them below target/ ([`patched_toolchain`]).
//!
//! A part that fails does not keep the others from running. The last line is `N passed, N failed`.

mod manifest;
mod patched_toolchain;
mod test_set;
mod tool;
mod toolchain;

use std::time::Instant;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::test;
use crate::totals::Totals;
use crate::workspace::Workspace;
use test_set::Part;
use tool::Tool;

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Parts to run, by the name of their package; all of them if it is left out
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// ThreadSanitizer instead of AddressSanitizer
    #[arg(long, conflicts_with = "miri")]
    thread: bool,
    /// miri instead of AddressSanitizer, with the nightly toolchain
    #[arg(long)]
    miri: bool,
    /// Handed to every test binary, such as a part of a test's name
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds and runs the parts, one after the other.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let tool = match (arguments.thread, arguments.miri) {
        (true, _) => Tool::Thread,
        (_, true) => Tool::Miri,
        _ => Tool::Address,
    };
    let parts = chosen(tool.parts(), &arguments.packages)?;
    let directory = workspace.target.join("sanitize/toolchains");
    let toolchain = patched_toolchain::complete(tool.toolchain()?, tool.components(), &directory)?;
    let (mut passed, mut failed) = (0, Vec::new());
    for (at, part) in parts.iter().enumerate() {
        println!("{} {}/{}: {part}", tool.name(), at + 1, parts.len());
        let start = Instant::now();
        let mut command = tool.command(workspace, &toolchain, part);
        command.args(part.arguments()).args(&arguments.rest);
        let (totals, succeeded) = test::stream(&mut command)?;
        println!("{part}: {} passed, {} s with the build", totals.passed, start.elapsed().as_secs());
        passed += totals.passed;
        if let Some(what) = complaint(&totals, succeeded) {
            failed.push(format!("{part}: {what}"));
        }
    }
    println!();
    failed.iter().for_each(|what| println!("failed: {what}"));
    println!("{passed} passed, {} failed under {}", failed.len(), tool.name());
    if failed.is_empty() { Ok(()) } else { Err(Failure::told()) }
}

/// What is wrong with the end of a part, if anything is.
fn complaint(totals: &Totals, succeeded: bool) -> Option<String> {
    match (totals.died(), totals.failures.len()) {
        (0, 0) if succeeded && totals.passed > 0 => None,
        (0, 0) if succeeded => Some("no test ran".into()),
        (0, 0) => Some("it did not build or did not end well; the messages are above".into()),
        (0, _) => Some(totals.failures.join(", ")),
        _ => Some("a test binary was stopped; the report is above".into()),
    }
}

fn chosen(parts: &'static [Part], packages: &[String]) -> Result<Vec<&'static Part>> {
    if let Some(unknown) = packages.iter().find(|name| parts.iter().all(|part| part.package != **name)) {
        let mut known: Vec<_> = parts.iter().map(|part| part.package).collect();
        known.dedup();
        let known = known.join(", ");
        return Err(Failure::new(format!("nothing of `{unknown}` runs under this tool; there is: {known}")));
    }
    let wanted = |part: &&Part| packages.is_empty() || packages.iter().any(|name| name == part.package);
    Ok(parts.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_package_is_refused_with_the_known_ones() {
        let text = chosen(test_set::ADDRESS, &["kiln-cuda".into()]).unwrap_err().to_string();
        assert!(text.contains("`kiln-cuda`") && text.contains("kiln-driver, "), "{text}");
        assert_eq!(text.matches("kiln-driver").count(), 1, "{text}");
        assert_eq!(chosen(test_set::ADDRESS, &[]).unwrap().len(), test_set::ADDRESS.len());
        let some = chosen(test_set::ADDRESS, &["kiln-ptx".into()]).unwrap();
        assert!(!some.is_empty() && some.iter().all(|part| part.package == "kiln-ptx"));
    }

    #[test]
    fn a_part_that_was_stopped_or_ran_nothing_is_a_failure() {
        let totals = |text: &str| {
            let mut totals = Totals::default();
            text.lines().for_each(|line| totals.read_line(line));
            totals
        };
        let good = totals("running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored");
        assert_eq!(complaint(&good, true), None);
        assert!(complaint(&good, false).is_some_and(|what| what.contains("did not end well")));
        assert!(complaint(&Totals::default(), true).is_some_and(|what| what.contains("no test ran")));
        assert!(complaint(&totals("running 2 tests"), false).is_some_and(|what| what.contains("stopped")));
    }
}
