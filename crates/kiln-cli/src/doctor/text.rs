//! The doctor's words, for people.

use std::fmt::Write;

use super::check::{Check, Status};
use super::examination::Examination;
use crate::exit::Exit;

/// The whole examination, as text without a line break at its end.
pub(crate) fn render(examination: &Examination, colours: bool) -> String {
    let mut text = format!("kiln doctor, policy `{}`\n", examination.policy());
    let width = examination.checks().iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in examination.checks() {
        let Check { name, status, detail, next_step } = check;
        let mark = painted(*status, colours);
        let _ = write!(text, "\n  {mark}  {name:<width$}  {detail}");
        if let Some(next_step) = next_step {
            let _ = write!(text, "\n  {:7}  {:width$}  next: {next_step}", "", "");
        }
    }
    let _ = write!(text, "\n\n{}", verdict(examination.exit(), examination.policy()));
    text
}

fn painted(status: Status, colours: bool) -> String {
    let (word, colour) = match status {
        Status::Ok => ("ok", "32"),
        Status::Missing => ("missing", "33"),
        Status::Needed => ("needed", "31"),
        Status::Fault => ("fault", "31"),
        Status::Skipped => ("skipped", "90"),
    };
    if colours { format!("\x1b[{colour}m{word:<7}\x1b[0m") } else { format!("{word:<7}") }
}

fn verdict(exit: Exit, policy: &str) -> String {
    match exit {
        Exit::Done => format!("What the policy `{policy}` needs is there."),
        Exit::Absent => format!("The policy `{policy}` needs a CUDA device, and there is none."),
        Exit::Usage | Exit::Compile | Exit::Fault => {
            "Something is there and does not work; see above.".into()
        }
    }
}
