//! Tables: columns that line up and fit the terminal.

use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::plural::counted;

/// Rows of words under a head; columns of numbers are aligned to the right.
#[derive(Debug)]
pub(crate) struct Table {
    inner: comfy_table::Table,
}

/// Spaces before a table.
const INDENT: &str = "  ";
/// Spaces between columns.
const GAP: u16 = 2;

impl Table {
    /// A table without rows. A name that begins with `#` heads a column of numbers.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        inner.set_header(head.iter().map(|name| name.strip_prefix('#').unwrap_or(name)));
        for (column, name) in inner.column_iter_mut().zip(head) {
            column.set_padding((0, GAP));
            if name.starts_with('#') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { inner }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, words: impl IntoIterator<Item = String>) {
        self.inner.add_row(words);
    }

    /// The table in so many columns. Where that is too narrow, cells take several lines.
    pub(crate) fn render(mut self, columns: usize) -> String {
        let width = (columns - INDENT.len().min(columns)).saturating_add(usize::from(GAP));
        self.inner.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        let lines = self.inner.lines().map(|line| format!("{INDENT}{}", line.trim_end()));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A number of bytes in the largest unit that fits.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = Some(name);
    }
    match unit {
        None => counted(bytes, "byte"),
        Some(unit) if size.fract() == 0.0 => format!("{size} {unit}"),
        // A half is rounded up, as in explanations of recordings.
        Some(unit) => format!("{:.1} {unit}", (size * 10.0).round() / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["name", "#bytes"]);
        table.row(["a".into(), "12345".into()]);
        table.row(["longer words".into(), "1".into()]);
        table
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        assert_eq!(
            sample().render(80),
            "  name          bytes\n  a             12345\n  longer words      1"
        );
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for columns in 16..30 {
            let text = sample().render(columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
            assert!(text.contains("12345") && text.contains("longer"), "{columns}:\n{text}");
        }
    }

    #[test]
    fn sizes_have_one_unit() {
        assert_eq!(
            [0, 1023, 1024, 1536, 800_000, 1 << 30].map(bytes),
            ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "781.3 KiB", "1 GiB"]
        );
    }
}
