//! A law in a separate process.
//!
//! On hardware a lost device is lost for the rest of the process. A test that holds such laws starts itself again, once
//! for each of them, with the name of the law in the environment.

use std::process::Command;

use crate::law::Law;
use crate::summary::{LawOutcome, LawReport};

const LAW_VARIABLE: &str = "KILN_CONFORM_LAW";
/// How a child says that there was nothing to show.
const INAPPLICABLE: &str = "skipped    ";

/// The law this process was started for, if it is a child.
pub(crate) fn wanted_law() -> Option<String> {
    std::env::var(LAW_VARIABLE).ok()
}

/// The path of a test as its binary names it, which leaves out the name of the crate.
pub(crate) fn test_path(module: &str, test: &str) -> String {
    match module.split_once("::") {
        Some((_, inner)) => format!("{inner}::{test}"),
        None => test.to_string(),
    }
}

/// Runs a law in a child: the same test binary, asked for this test alone.
pub(crate) fn run(law: &'static Law, path: &str) -> LawOutcome {
    let failed = |text: String| LawOutcome::Failed(LawReport { text, round: 0 });
    let output = std::env::current_exe().and_then(|program| {
        Command::new(program).args([path, "--exact", "--nocapture"]).env(LAW_VARIABLE, law.name).output()
    });
    let output = match output {
        Ok(output) => output,
        Err(error) => return failed(format!("expected a child process to start, saw {error}")),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let skipped = said.lines().find_map(|line| line.strip_prefix(INAPPLICABLE));
    match (output.status.success(), skipped) {
        (true, Some(why)) => {
            LawOutcome::Inapplicable(why.split_once(": ").map_or(why, |(_, why)| why).into())
        }
        // A filter that matches no test succeeds too; the law's own line says that it ran.
        (true, None) if said.contains(law.name) => LawOutcome::Passed,
        (true, None) => failed(format!("expected the child to run {path}, saw:{}", quote(&said))),
        (false, _) => {
            let (status, errors) = (output.status, String::from_utf8_lossy(&output.stderr));
            failed(format!("expected the child to succeed, saw {status}:{}{}", quote(&said), quote(&errors)))
        }
    }
}

/// What a child said, line by line behind a bar, so that its result is not taken for that of the parent.
fn quote(text: &str) -> String {
    text.lines().map(|line| format!("\n           | {line}")).collect()
}
