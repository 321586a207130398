//! What ran when, drawn: one row per stream, time from left to right.

use std::fmt::Write;
use std::time::Duration;

/// Something that ran on a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bar {
    /// The row it belongs to.
    pub(crate) row: usize,
    /// When it began.
    pub(crate) start: Duration,
    /// When it ended.
    pub(crate) end: Duration,
    /// What it was.
    pub(crate) work: Work,
}

/// Kinds of work, which differ in the drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// Host to device.
    Upload,
    /// A kernel.
    Kernel,
    /// Device to host.
    Download,
    /// Anything else.
    Other,
}

impl Work {
    const ALL: [Self; 4] = [Self::Upload, Self::Kernel, Self::Download, Self::Other];

    fn glyph(self) -> char {
        match self {
            Self::Upload => '▒',
            Self::Kernel => '█',
            Self::Download => '▓',
            Self::Other => '░',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Kernel => "kernel",
            Self::Download => "download",
            Self::Other => "other",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Upload => "\x1b[36m",
            Self::Kernel => "\x1b[33m",
            Self::Download => "\x1b[35m",
            Self::Other => "\x1b[90m",
        }
    }
}

/// Draws bars in rows. Bars of one row do not overlap in time; where two share a column, the later one is seen.
pub(crate) fn draw(rows: &[String], bars: &[Bar], columns: usize, colours: bool) -> String {
    let margin = rows.iter().map(|name| name.chars().count()).max().unwrap_or(0) + 2;
    let width = columns.saturating_sub(margin + 1).max(10);
    let end = bars.iter().map(|bar| bar.end).max().unwrap_or_default();
    let mut text = String::new();
    for (row, name) in rows.iter().enumerate() {
        let mut cells = vec![None; width];
        for bar in bars.iter().filter(|bar| bar.row == row) {
            for cell in &mut cells[column(bar.start, end, width)..column_after(bar, end, width)] {
                *cell = Some(bar.work);
            }
        }
        let _ = writeln!(text, "{name:<margin$}{}", paint(&cells, colours));
    }
    let label = format!("{end:.1?}");
    let axis = format!("0{}{label}", "─".repeat(width.saturating_sub(label.chars().count() + 1)));
    let _ = write!(text, "{:margin$}{axis}\n{:margin$}{}", "", "", legend(bars, colours));
    text
}

fn column(at: Duration, end: Duration, width: usize) -> usize {
    let columns = at.as_nanos() * width as u128 / end.as_nanos().max(1);
    usize::try_from(columns).unwrap_or(usize::MAX).min(width - 1)
}

/// Behind the last column of a bar, which has at least one.
fn column_after(bar: &Bar, end: Duration, width: usize) -> usize {
    let columns = (bar.end.as_nanos() * width as u128).div_ceil(end.as_nanos().max(1));
    let after = usize::try_from(columns).unwrap_or(usize::MAX).min(width);
    after.max(column(bar.start, end, width) + 1)
}

fn paint(cells: &[Option<Work>], colours: bool) -> String {
    let mut text = String::new();
    for run in cells.chunk_by(|a, b| a == b) {
        match run.first().copied().flatten() {
            None => text.extend(run.iter().map(|_| ' ')),
            Some(work) => {
                let glyphs: String = run.iter().map(|_| work.glyph()).collect();
                text += &coloured(work, &glyphs, colours);
            }
        }
    }
    text.trim_end().into()
}

fn legend(bars: &[Bar], colours: bool) -> String {
    let seen = Work::ALL.into_iter().filter(|work| bars.iter().any(|bar| bar.work == *work));
    let entry =
        |work: Work| format!("{} {}", coloured(work, &work.glyph().to_string(), colours), work.name());
    seen.map(entry).collect::<Vec<_>>().join("   ")
}

fn coloured(work: Work, text: &str, colours: bool) -> String {
    if colours { format!("{}{text}\x1b[0m", work.colour()) } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(row: usize, start: u64, end: u64, work: Work) -> Bar {
        Bar { row, start: Duration::from_micros(start), end: Duration::from_micros(end), work }
    }

    fn rows(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn bars_stand_where_their_time_is() {
        let bars =
            [bar(0, 0, 10, Work::Upload), bar(1, 10, 20, Work::Kernel), bar(0, 15, 20, Work::Download)];
        let drawing = draw(&rows(&["a", "bb"]), &bars, 25, false);
        let lines: Vec<&str> = drawing.lines().collect();
        assert_eq!(lines[0], "a   ▒▒▒▒▒▒▒▒▒▒     ▓▓▓▓▓");
        assert_eq!(lines[1], "bb            ██████████");
        assert_eq!(lines[2], "    0─────────────20.0µs");
        assert_eq!(lines[3], "    ▒ upload   █ kernel   ▓ download");
    }

    #[test]
    fn a_bar_of_no_length_is_still_seen_and_nothing_is_drawn_outside() {
        let bars = [bar(0, 100, 100, Work::Other), bar(0, 0, 0, Work::Kernel)];
        let drawing = draw(&rows(&["s"]), &bars, 20, false);
        let first = drawing.lines().next().unwrap();
        assert_eq!((first.matches('█').count(), first.matches('░').count()), (1, 1));
        assert!(first.chars().count() <= 20);
        assert!(draw(&[], &[], 0, true).contains('0'));
    }

    #[test]
    fn colours_are_a_choice() {
        let bars = [bar(0, 0, 1, Work::Kernel)];
        assert!(draw(&rows(&["s"]), &bars, 40, true).contains('\x1b'));
        assert!(!draw(&rows(&["s"]), &bars, 40, false).contains('\x1b'));
    }
}
