//! Rows as a picture: a bar for each subject, workloads below each other, kiln in a different colour.

use std::fmt::Write;

use crate::Failure;
use crate::markdown::number;
use crate::result_table::Row;

const WIDTH: f64 = 860.0;
/// Where bars begin, and the most they take; the figure stands behind them.
const BARS: (f64, f64) = (360.0, 400.0);
const ROW: f64 = 20.0;
const TITLE: f64 = 30.0;
const FOOT: f64 = 34.0;
/// Figures further apart than this are drawn on a logarithmic scale.
const MOST_LINEAR: f64 = 20.0;

/// Readable on white and on black.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.grid{stroke:#8886;stroke-width:1}\
.kiln{fill:#d9480f}.peer{fill:#8b949e}.faint{fill:#6e7781}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9198a1}}";

/// A picture of the workloads with these names, in their order.
///
/// # Errors
/// A name that has no rows; figures in different units, or none that is larger than 0.
pub(crate) fn svg(rows: &[Row], workloads: &[String]) -> Result<String, Failure> {
    let mut groups = Vec::new();
    for name in workloads {
        let group: Vec<&Row> = rows.iter().filter(|row| row.workload == *name).collect();
        if group.is_empty() {
            return Err(format!("there are no rows of `{name}`; name workloads as the table does").into());
        }
        groups.push((name, group));
    }
    let shown = || groups.iter().flat_map(|(_, group)| group);
    let unit = shown().next().map_or("", |row| row.unit.as_str());
    if let Some(other) = shown().find(|row| row.unit != unit) {
        return Err(
            format!("`{}` is in {} and not in {unit}; draw it apart", other.workload, other.unit).into()
        );
    }
    let scale = Scale::over(shown().map(|row| row.p50)).ok_or("nothing to draw is larger than 0")?;

    let bars = shown().count() as f64;
    let height = groups.len() as f64 * TITLE + bars * ROW + FOOT;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\">\n<style>{STYLE}</style>\n"
    );
    let foot = height - FOOT;
    // Writing to a string does not fail.
    for tick in scale.ticks() {
        let x = BARS.0 + scale.length(tick);
        let _ = writeln!(text, "<line class=\"grid\" x1=\"{x:.1}\" y1=\"4\" x2=\"{x:.1}\" y2=\"{foot}\"/>");
        let (y, tick) = (foot + 16.0, number(tick));
        let _ = writeln!(
            text,
            "<text class=\"faint\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{tick}</text>"
        );
    }
    let kind = if scale.is_logarithmic { ", logarithmic" } else { "" };
    let _ =
        writeln!(text, "<text class=\"faint\" x=\"0\" y=\"{}\">{}{kind}</text>", foot + 16.0, escaped(unit));
    let mut y = 0.0;
    for (name, group) in &groups {
        y += TITLE;
        let _ = writeln!(text, "<text class=\"title\" x=\"0\" y=\"{}\">{}</text>", y - 8.0, escaped(name));
        for row in group {
            draw_bar(&mut text, y, row, &scale);
            y += ROW;
        }
    }
    text.push_str("</svg>\n");
    Ok(text)
}

fn draw_bar(text: &mut String, y: f64, row: &Row, scale: &Scale) {
    let class = if row.subject.starts_with("kiln") { "kiln" } else { "peer" };
    let (length, middle) = (scale.length(row.p50), y + ROW * 0.65);
    let (label, figure) = (escaped(&row.subject), number(row.p50));
    let (x, end) = (BARS.0, BARS.0 + length + 6.0);
    let _ = writeln!(text, "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{label}</text>", x - 8.0);
    let _ = writeln!(
        text,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{length:.1}\" height=\"{}\" rx=\"2\"/>",
        y + 3.0,
        ROW - 6.0
    );
    let _ = writeln!(text, "<text x=\"{end:.1}\" y=\"{middle}\">{figure}</text>");
}

/// How long a bar is.
struct Scale {
    least: f64,
    most: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// None if no figure is larger than 0.
    fn over(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let (least, most) = figures
            .filter(|figure| *figure > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(least, most), figure| (least.min(figure), most.max(figure)));
        let is_logarithmic = most > least * MOST_LINEAR;
        // From the power of ten below the least, so that its bar has a length.
        let least = if is_logarithmic { 10_f64.powf(least.log10().floor()) } else { 0.0 };
        (most > 0.0).then_some(Self { least, most, is_logarithmic })
    }

    fn length(&self, figure: f64) -> f64 {
        let part = if self.is_logarithmic {
            (figure.max(self.least) / self.least).log10() / (self.most / self.least).log10()
        } else {
            figure / self.most
        };
        part * BARS.1
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            return (0..)
                .map(|power| self.least * 10_f64.powi(power))
                .take_while(|tick| *tick <= self.most)
                .collect();
        }
        let step = 10_f64.powf(self.most.log10().floor());
        let step = if self.most < 3.0 * step { step / 2.0 } else { step };
        (0..).map(|count| step * f64::from(count)).take_while(|tick| *tick <= self.most).collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, subject: &str, p50: f64, unit: &str) -> Row {
        let (workload, subject, unit) = (workload.to_owned(), subject.to_owned(), unit.to_owned());
        Row { workload, subject, p50, p99: p50, unit, ratio: 1.0 }
    }

    #[test]
    fn a_bar_is_as_long_as_its_figure() {
        let rows = [
            row("l1", "raw", 4000.0, "ns"),
            row("l1", "kiln <1>", 1000.0, "ns"),
            row("m4", "kiln", 1.1, "res/live"),
        ];
        let drawn = svg(&rows, &["l1".to_owned()]).unwrap();
        assert!(drawn.contains("class=\"peer\" x=\"360\" y=\"33\" width=\"400.0\""), "{drawn}");
        assert!(drawn.contains("class=\"kiln\" x=\"360\" y=\"53\" width=\"100.0\""), "{drawn}");
        assert!(
            drawn.contains(">kiln &lt;1&gt;<") && drawn.contains(">4,000<") && !drawn.contains("logarithmic")
        );
    }

    #[test]
    fn what_is_far_apart_is_drawn_by_its_powers_of_ten() {
        let scale = Scale::over([40.0, 100_000.0, 0.0].into_iter()).unwrap();
        assert_eq!(scale.ticks(), [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
        assert!((scale.length(1_000.0) - BARS.1 / 2.0).abs() < 1e-9);
        assert_eq!(scale.length(0.0), 0.0);
        assert_eq!(Scale::over([2.1].into_iter()).unwrap().ticks(), [0.0, 0.5, 1.0, 1.5, 2.0]);
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let rows = [
            row("l1", "raw", 4000.0, "ns"),
            row("m4", "kiln", 1.1, "res/live"),
            row("m5", "kiln", 0.0, "refused"),
        ];
        let said = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            svg(&rows, &names).unwrap_err().to_string()
        };
        assert!(said(&["l9"]).contains("no rows of `l9`"));
        assert!(said(&["l1", "m4"]).contains("`m4` is in res/live and not in ns"));
        assert!(said(&["m5"]).contains("larger than 0"));
        assert!(said(&[]).contains("larger than 0"));
    }
}
