//! The efficiency curve as a picture: ranks to the right on a logarithmic scale, efficiency upwards.

use std::fmt::Write;

use super::curve::{Curve, Point};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Where the drawing begins and ends, from the left and from the top.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 310.0;

/// Readable on white and on black.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.grid{stroke:#8886}.curve{fill:none;stroke:#d9480f;stroke-width:2}\
.point{fill:#d9480f}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}";

/// The picture.
pub(super) fn draw(curve: &Curve) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\">\n<style>{STYLE}</style>\n\
         <text x=\"{LEFT}\" y=\"20\">efficiency by ranks, {}</text>\n",
        curve.topology
    );
    let logs = || curve.points.iter().map(|point| f64::from(point.ranks.max(1)).log2());
    let (least, most) = (logs().fold(f64::INFINITY, f64::min), logs().fold(0.0, f64::max));
    let place = |point: &Point| {
        let share = (f64::from(point.ranks.max(1)).log2() - least) / (most - least).max(1e-9);
        (LEFT + share * (RIGHT - LEFT), BOTTOM - point.efficiency.clamp(0.0, 1.0) * (BOTTOM - TOP))
    };
    // Writing to a string does not fail.
    for percent in [0, 25, 50, 75, 100] {
        let y = BOTTOM - f64::from(percent) / 100.0 * (BOTTOM - TOP);
        let _ =
            writeln!(text, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>");
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
    let line: Vec<String> = curve.points.iter().map(place).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(text, "<polyline class=\"curve\" points=\"{}\"/>", line.join(" "));
    for point in &curve.points {
        let (x, y) = place(point);
        let _ = writeln!(text, "<circle class=\"point\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 20.0,
            point.ranks
        );
    }
    text.push_str("</svg>\n");
    text
}
