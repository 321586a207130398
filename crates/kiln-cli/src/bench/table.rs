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

    /// Adds a measurement, with the digits that mean something.
    pub(super) fn add(&mut self, console: &mut Console, row: Row) {
        let row = Row { p50: meaningful(row.p50), p99: meaningful(row.p99), ..row };
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

/// A figure with two decimals, as the table prints it, and with as many as four digits need if it is small.
fn meaningful(value: f64) -> f64 {
    const DECIMALS: i32 = 2;
    const DIGITS: i32 = 4;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let before_point = value.abs().log10().floor() as i32 + 1;
    let decimals = (DIGITS - before_point).clamp(DECIMALS, 15) as usize;
    // By way of text, whose digits are the ones that are printed.
    format!("{value:.decimals$}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::meaningful;

    #[test]
    fn figures_have_two_decimals_or_four_digits() {
        for (value, wanted) in [
            (6_703.599_999_999_999, "6703.6"),
            (6_703.123_456, "6703.12"),
            (71.000_000_01, "71"),
            (7.123_456, "7.123"),
            (0.001_234_56, "0.001235"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (1e300, "1e300"),
            (f64::INFINITY, "inf"),
        ] {
            let found = meaningful(value);
            assert!(found.to_string() == wanted || format!("{found:e}") == wanted, "{value} is {found}");
        }
        assert!(meaningful(f64::NAN).is_nan());
    }
}
