//! A page for Prometheus: its text format, version 0.0.4.
//!
//! Each metric has its help and type once, then a line for each device and label. A page is written from snapshots, so a scraper does
//! not block.

use std::fmt::Write;

use super::metric::{Kind, METRICS};
use super::snapshot::Snapshot;

/// The numbers of several devices as one page.
///
/// ```
/// let gpu = kiln::DeviceRuntime::simulated(1)?;
/// let page = kiln::telemetry::prometheus(&[gpu.telemetry().snapshot()]);
/// assert!(page.contains("# TYPE kiln_launches_total counter"));
/// # Ok::<(), kiln::Error>(())
/// ```
pub fn prometheus(snapshots: &[Snapshot]) -> String {
    let mut page = String::new();
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
        line(&mut page, format_args!("# HELP {} {help}", metric.name));
        line(&mut page, format_args!("# TYPE {} {kind}", metric.name));
        for snapshot in snapshots {
            for series in metric.series {
                let labels = labels(snapshot, series.label);
                line(&mut page, format_args!("{}{{{labels}}} {}", metric.name, series.source.text(snapshot)));
            }
        }
    }
    page
}

fn labels(snapshot: &Snapshot, further: Option<(&'static str, &'static str)>) -> String {
    let device = &snapshot.device;
    let ordinal = device.ordinal.to_string();
    let own = [
        ("kind", device.kind.as_str()),
        ("device", ordinal.as_str()),
        ("name", device.name.as_str()),
        ("uuid", device.uuid.as_str()),
    ];
    let mut text = String::new();
    for (label, value) in own.into_iter().chain(further) {
        let separator = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{label}=\"{}\"", escaped(value));
    }
    text
}

/// A label's value: backslash, quote and the end of a line are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_label_early_is_escaped() {
        assert_eq!(escaped("a \"b\"\\\nc"), "a \\\"b\\\"\\\\\\nc");
    }
}
