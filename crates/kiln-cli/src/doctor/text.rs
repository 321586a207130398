//! The examination as text.

use super::check::{Check, Status};
use super::examination::Examination;
use crate::line_wrap::wrap_behind;

/// The most places of a search that are shown.
const MAX_TRIED: usize = 3;

/// The examination, without a line end behind it: first whether one can work, then the details.
pub(crate) fn render(examination: &Examination, columns: usize, colours: bool) -> String {
    let mut text = vec![examination.summary().to_owned()];
    text.extend(examination.compiler());
    text.push(String::new());
    text.push(format!("Details, for the policy `{}`:", examination.policy()));
    let width = examination.checks().iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for Check { name, status, detail, next_step, searched } in examination.checks() {
        let mark = painted(*status, colours);
        text.push(wrap_behind(&format!("  {mark}  {name:<width$}  "), detail, columns));
        // A longer list is for JSON.
        for place in searched.iter().filter(|_| searched.len() <= MAX_TRIED) {
            text.push(wrap_behind(&format!("  {:7}  {:width$}  tried ", "", ""), place, columns));
        }
        if let Some(next_step) = next_step {
            let prefix = format!("  {:7}  {:width$}  next: ", "", "");
            text.push(wrap_behind(&prefix, next_step, columns));
        }
    }
    text.join("\n")
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
