//! Rows as a table for a page: workloads in the order they were first measured, each with all of its subjects.

use std::fmt::Write;

use crate::result_table::Row;

/// The table, with medians and 99th percentiles.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text =
        "| workload | subject | p50 | p99 | unit | ratio |\n|---|---|---|---|---|---|\n".to_owned();
    let mut written: Vec<&str> = Vec::new();
    for first in rows {
        if written.contains(&first.workload.as_str()) {
            continue;
        }
        written.push(&first.workload);
        let subjects = rows.iter().filter(|row| row.workload == first.workload);
        for (at, row) in subjects.enumerate() {
            let workload = if at == 0 { row.workload.as_str() } else { "" };
            let (p50, p99) = (number(row.p50), number(row.p99));
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {workload} | {} | {p50} | {p99} | {} | {:.2} |",
                row.subject, row.unit, row.ratio
            );
        }
    }
    text
}

/// Three digits for what is small, whole thousands apart for what is large.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        let digits = if value.abs() < 10.0 { 2 } else { 1 };
        return format!("{value:.digits$}");
    }
    let whole = format!("{value:.0}");
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole.as_str()), |digits| ("-", digits));
    let first = (digits.len() - 1) % 3 + 1;
    let mut text = format!("{sign}{}", &digits[..first]);
    for start in (first..digits.len()).step_by(3) {
        text.push(',');
        text.push_str(&digits[start..start + 3]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance() {
        let written = [0.994, 5.70, 24.04, 108.4, 1_676.0, 83_347.4, 1_234_567.0, -1_000.0].map(number);
        assert_eq!(written, ["0.99", "5.70", "24.0", "108", "1,676", "83,347", "1,234,567", "-1,000"]);
    }

    #[test]
    fn the_rows_of_peers_stand_with_their_workload() {
        let row = |workload: &str, subject: &str, p50| Row {
            workload: workload.to_owned(),
            subject: subject.to_owned(),
            p50,
            p99: 2.0 * p50,
            unit: "ns".to_owned(),
            ratio: 1.0,
        };
        let rows = [row("m1", "kiln", 20.0), row("m3", "kiln", 6.0), row("m1", "RMM", 529.0)];
        let lines: Vec<String> = table(&rows).lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "| m1 | kiln | 20.0 | 40.0 | ns | 1.00 |",
                "|  | RMM | 529 | 1,058 | ns | 1.00 |",
                "| m3 | kiln | 6.00 | 12.0 | ns | 1.00 |"
            ]
        );
    }
}
