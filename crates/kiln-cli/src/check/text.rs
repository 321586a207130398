//! The report of a check as text.

use std::fmt::Write;

use super::report::Report;
use crate::demangled_name::readable;
use crate::note_kind::NoteKind;

/// The report, without a line end behind it.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    if !report.printed.is_empty() {
        let _ = writeln!(text, "{}", report.printed.strip_suffix('\n').unwrap_or(&report.printed));
    }
    let (kernel, orders) = (readable(&report.kernel), seeds(&report.seeds));
    let _ = write!(text, "{kernel} on the simulated device, {orders}, every check on");
    if !report.compared_seeds.is_empty() {
        let compared = seeds(&report.compared_seeds);
        let _ = write!(text, "\n  and {compared} without checks, to compare results");
    }
    for (at, finding) in report.findings.iter().enumerate() {
        let _ = write!(text, "\n{:3}. {finding}", at + 1);
        let is_of_pair = finding.kind == NoteKind::Order.word();
        if finding.seeds.len() < report.seeds.len() && !is_of_pair {
            let seeds: Vec<String> = finding.seeds.iter().map(u64::to_string).collect();
            let plural = if seeds.len() == 1 { "" } else { "s" };
            let _ = write!(text, "\n     only with seed{plural} {}", seeds.join(", "));
        }
    }
    let _ = write!(text, "{}", report.left_out);
    for finding in &report.refused {
        let _ = write!(text, "\nrefused: {finding}");
    }
    for warning in &report.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    for note in &report.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    text.push_str("\nnot checked:");
    for sentence in &report.not_checked.text {
        let _ = write!(text, "\n  - {sentence}");
    }
    let _ = write!(text, "\n{}", summary(report.findings.len(), !report.refused.is_empty()));
    text
}

/// Names seeds that follow each other, and one that may come behind them.
fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [only] => format!("seed {only}"),
        // An order that was run without checks first, and faulted.
        [first, .., last, further] if *further > last + 1 => format!("seeds {first} to {last} and {further}"),
        [first, .., last] => format!("seeds {first} to {last}"),
        [] => String::new(),
    }
}

fn summary(findings: usize, refused: bool) -> String {
    let count = |count: usize, noun: &str| match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let findings = count(findings, "finding");
    if refused {
        return format!("refused; {findings} in what was executed before");
    }
    findings
}
