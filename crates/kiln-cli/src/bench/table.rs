//! The measurements, printed as they come.

use serde::{Deserialize, Serialize};

use crate::console::Console;

/// One measurement.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) workload: String,
    pub(super) subject: String,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) unit: String,
}

/// All measurements of a run.
#[derive(Default, Serialize)]
pub(super) struct Table {
    device: String,
    notes: Vec<String>,
    rows: Vec<Row>,
    #[serde(skip)]
    is_json: bool,
}

impl Table {
    /// An empty table; as JSON it is printed at the end.
    pub(super) fn new(is_json: bool) -> Self {
        Self { is_json, ..Self::default() }
    }

    pub(super) fn begin(&mut self, console: &mut Console, device: String) {
        self.say(console, &device);
        let (median, percentile) = ("p50", "p99");
        self.say(console, &format!("{:<20} {:<28} {median:>11} {percentile:>11}", "", ""));
        self.device = device;
    }

    pub(super) fn add(&mut self, console: &mut Console, row: Row) {
        let Row { workload, subject, p50, p99, unit } = &row;
        self.say(console, &format!("{workload:<20} {subject:<28} {p50:>11.2} {p99:>11.2} {unit}"));
        self.rows.push(row);
    }

    pub(super) fn note(&mut self, console: &mut Console, text: &str) {
        self.say(console, &format!("# {text}"));
        self.notes.push(text.to_owned());
    }

    fn say(&self, console: &mut Console, line: &str) {
        if !self.is_json {
            console.line(line.trim_end());
        }
    }
}
