//! The report of a run as text.

use std::fmt::Write;

use super::Report;
use crate::demangled_name::readable;
use crate::plural::counted;
use crate::table::Table;

/// The report, without a line end behind it.
pub(super) fn render(report: &Report, columns: usize) -> String {
    let mut text = String::new();
    if let Some(printed) = report.printed.as_deref().filter(|printed| !printed.is_empty()) {
        let _ = writeln!(text, "{}", printed.strip_suffix('\n').unwrap_or(printed));
    }
    let [gx, gy, gz] = report.grid;
    let [bx, by, bz] = report.block;
    let seed = report.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
    let _ = write!(text, "{} on {}{seed} ({})", readable(&report.kernel), report.device, report.reason);
    let _ = write!(text, "\n  grid {gx} x {gy} x {gz}, block {bx} x {by} x {bz}");
    if report.shared_bytes > 0 {
        let bytes = counted(u64::from(report.shared_bytes), "byte");
        let _ = write!(text, ", {bytes} of dynamic shared memory");
    }
    if !report.arguments.is_empty() {
        let _ = write!(text, "\n{}", arguments(report).render(columns));
    }
    for constant in &report.constants {
        let _ = write!(text, "\n  variable {constant}");
    }
    for warning in &report.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    for (at, finding) in report.findings.iter().enumerate() {
        let _ = write!(text, "\n{:3}. {finding}", at + 1);
    }
    let _ = write!(text, "{}", report.left_out);
    for finding in &report.refused {
        let _ = write!(text, "\nrefused: {finding}");
    }
    // A finding says what the fault is, and where.
    if let Some(fault) =
        report.fault.as_ref().filter(|_| report.findings.is_empty() && report.refused.is_empty())
    {
        let _ = write!(text, "\nfault: {fault}");
    }
    for statistics in report.statistics.iter().flatten() {
        let _ = write!(text, "\n{}", statistics.render(columns));
    }
    for written in &report.written {
        let _ = write!(text, "\nwrote {}: {} x {}", written.file, written.elements, written.element);
    }
    if let Some(why) = &report.not_written {
        let _ = write!(text, "\nno file was written: {why}");
    }
    text
}

fn arguments(report: &Report) -> Table {
    let names = report.arguments.iter().any(|sheet| sheet.name.is_some());
    let head: &[_] = match names {
        true => &["##", "name", "given", "element", "shape", "#bytes", "the program"],
        false => &["##", "given", "element", "shape", "#bytes", "the kernel"],
    };
    let mut table = Table::new(head);
    for sheet in &report.arguments {
        let first = std::iter::once(sheet.index.to_string()).chain(sheet.name.clone());
        table.row(first.chain([
            sheet.given.clone(),
            sheet.element.clone(),
            sheet.shape.as_ref().map_or_else(String::new, |shape| format!("{shape:?}")),
            sheet.bytes.to_string(),
            sheet.effect.unwrap_or("takes it").to_owned(),
        ]));
    }
    table
}
