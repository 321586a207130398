//! Columns that line up.

use std::fmt;

/// Rows of words under a head; a column of numbers stands to the right.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    numbers: Vec<bool>,
    rows: Vec<Vec<String>>,
}

/// Spaces between columns.
const GAP: &str = "  ";

impl Table {
    /// A table with no rows; a name that begins with `#` heads a column of numbers.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        let numbers = head.iter().map(|name| name.starts_with('#')).collect();
        Self {
            head: head.iter().map(|name| name.strip_prefix('#').unwrap_or(name)).collect(),
            numbers,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, words: impl IntoIterator<Item = String>) {
        self.rows.push(words.into_iter().collect());
    }

    fn line<'w>(&self, words: impl Iterator<Item = &'w str>) -> String {
        let padded = words.enumerate().map(|(at, word)| {
            let width = self.width(at);
            let space = " ".repeat(width.saturating_sub(word.chars().count()));
            if self.numbers.get(at) == Some(&true) {
                format!("{space}{word}")
            } else {
                format!("{word}{space}")
            }
        });
        padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }

    fn width(&self, column: usize) -> usize {
        let rows = self.rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
        rows.chain(self.head.get(column).copied()).map(|word| word.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}", self.line(self.head.iter().copied()))?;
        for row in &self.rows {
            write!(f, "\n  {}", self.line(row.iter().map(String::as_str)))?;
        }
        Ok(())
    }
}

/// A number of bytes as people say it.
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
    unit.map_or_else(|| format!("{bytes} B"), |unit| format!("{size:.1} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(&["name", "#bytes"]);
        table.row(["a".into(), "12345".into()]);
        table.row(["longer".into(), "1".into()]);
        assert_eq!(table.to_string(), "  name    bytes\n  a       12345\n  longer      1");
    }

    #[test]
    fn sizes_are_said_in_one_unit() {
        assert_eq!(
            [0, 1023, 1024, 1536, 1 << 30].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 GiB"]
        );
    }
}
