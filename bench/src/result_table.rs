//! What a measurement says, and the table it stands in.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::timing::Percentiles;

/// One measurement.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Row {
    pub(crate) workload: String,
    pub(crate) subject: String,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) unit: String,
    /// Against the first subject of the workload.
    pub(crate) ratio: f64,
}

/// A measurement of another program.
#[derive(Deserialize)]
struct PeerRow {
    workload: String,
    subject: String,
    p50: f64,
    p99: f64,
    unit: String,
}

/// All measurements of a run, printed as they come.
#[derive(Default, Serialize, Deserialize, Debug)]
pub(crate) struct Table {
    notes: Vec<String>,
    rows: Vec<Row>,
    #[serde(skip)]
    is_quiet: bool,
    /// The file that keeps the rows.
    #[serde(skip)]
    kept_in: Option<PathBuf>,
    /// The workloads that could not be measured.
    #[serde(skip)]
    pub(crate) failed: Vec<&'static str>,
}

impl Table {
    /// An empty table; a quiet one prints nothing by itself. What it holds is in the file, if there is one, as soon as it is measured.
    pub(crate) fn new(is_quiet: bool, kept_in: Option<&Path>) -> Self {
        Self { is_quiet, kept_in: kept_in.map(Path::to_path_buf), ..Self::default() }
    }

    /// Writes the rows to the file that keeps them, if there is one.
    pub(crate) fn keep(&self) -> Result<(), Failure> {
        if let Some(path) = &self.kept_in {
            std::fs::write(path, self.json()?)?;
        }
        Ok(())
    }

    /// The table of an earlier run, as it was kept.
    pub(crate) fn kept(
        json: &str,
        is_quiet: bool,
        kept_in: Option<&Path>,
    ) -> Result<Self, serde_json::Error> {
        let kept_in = kept_in.map(Path::to_path_buf);
        Ok(Self { is_quiet, kept_in, ..serde_json::from_str(json)? })
    }

    /// Prints the rows as a table for a page.
    #[expect(clippy::print_stdout, reason = "that is what was asked for")]
    pub(crate) fn print_markdown(&self) {
        print!("{}", crate::markdown::table(&self.rows));
    }

    /// Draws workloads.
    pub(crate) fn chart(&self, workloads: &[String]) -> Result<String, Failure> {
        crate::chart::svg(&self.rows, workloads)
    }

    /// Adds a measurement in nanoseconds per operation, and prints it.
    pub(crate) fn add(
        &mut self,
        workload: impl Into<String>,
        subject: impl Into<String>,
        spread: Percentiles,
    ) {
        self.add_in("ns", workload, subject, spread);
    }

    /// Adds a measurement in another unit.
    pub(crate) fn add_in(
        &mut self,
        unit: impl Into<String>,
        workload: impl Into<String>,
        subject: impl Into<String>,
        spread: Percentiles,
    ) {
        let workload = workload.into();
        let first = self.rows.iter().find(|row| row.workload == workload);
        let ratio = first.filter(|first| first.p50 != 0.0).map_or(1.0, |first| spread.p50 / first.p50);
        let Percentiles { p50, p99 } = spread;
        let row = Row { workload, subject: subject.into(), p50, p99, unit: unit.into(), ratio };
        self.say(format_args!(
            "{:<26} {:<44} {:>12.2} {:>12.2} {:<8} {:>7.3}x",
            row.workload, row.subject, row.p50, row.p99, row.unit, ratio
        ));
        self.rows.push(row);
        // A run that is stopped keeps what it has; what cannot be written is said at the end.
        let _ = self.keep();
    }

    /// Adds what another program printed, a JSON object a line.
    pub(crate) fn add_peers(&mut self, lines: &str) -> Result<(), Failure> {
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            if !line.starts_with('{') {
                self.note(line);
                continue;
            }
            let PeerRow { workload, subject, p50, p99, unit } = serde_json::from_str(line)?;
            self.add_in(unit, workload, subject, Percentiles { p50, p99 });
        }
        Ok(())
    }

    /// Says something that is no measurement.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.say(format_args!("# {text}"));
        self.notes.push(text);
    }

    /// The rows as JSON.
    pub(crate) fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Prints the rows as JSON.
    #[expect(clippy::print_stdout, reason = "that is what was asked for")]
    pub(crate) fn print_json(&self) -> Result<(), serde_json::Error> {
        println!("{}", self.json()?);
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    fn say(&self, line: std::fmt::Arguments<'_>) {
        if !self.is_quiet {
            println!("{line}");
        }
    }
}
