//! What a measurement says, and the table it stands in.

use serde::Serialize;

use crate::timing::Spread;

/// One measurement.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct Row {
    workload: &'static str,
    subject: String,
    p50: f64,
    p99: f64,
    unit: &'static str,
    /// Against the first subject of the workload.
    ratio: f64,
}

/// All measurements of a run, printed as they come.
#[derive(Default, Serialize, Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a measurement in nanoseconds per operation, and prints it.
    pub(crate) fn add(&mut self, workload: &'static str, subject: impl Into<String>, spread: Spread) {
        self.add_in("ns", workload, subject, spread);
    }

    /// Adds a measurement in a unit of its own.
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    pub(crate) fn add_in(
        &mut self,
        unit: &'static str,
        workload: &'static str,
        subject: impl Into<String>,
        spread: Spread,
    ) {
        let first = self.rows.iter().find(|row| row.workload == workload);
        let ratio = first.map_or(1.0, |first| spread.p50 / first.p50);
        let row = Row { workload, subject: subject.into(), p50: spread.p50, p99: spread.p99, unit, ratio };
        println!(
            "{:<4} {:<44} {:>12.1} {:>12.1} {:<5} {:>7.3}x",
            row.workload, row.subject, row.p50, row.p99, unit, ratio
        );
        self.rows.push(row);
    }

    /// The rows as JSON.
    pub(crate) fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}
