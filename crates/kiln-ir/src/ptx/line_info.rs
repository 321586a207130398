//! Which line each instruction came from, as PTX says it: `.file` for each file, `.loc` before each statement.

use std::fmt::Write;

use super::writer::Writer;
use crate::source_location::SourceLocation;

/// The files named so far, and the line the next instruction has.
#[derive(Debug)]
pub(super) struct LineInfo {
    /// The file name of a text.
    text: String,
    files: Vec<String>,
    current: Option<(usize, u32, u32)>,
}

impl LineInfo {
    pub(super) fn new(program: &str) -> Self {
        Self { text: format!("{program}.kir"), files: Vec::new(), current: None }
    }

    /// The `.loc` of a place, unless it is the current one.
    fn locate(&mut self, location: SourceLocation) -> Option<String> {
        let (file, line, column) = match location {
            SourceLocation::Unknown => return None,
            SourceLocation::Text { line, column } => (self.text.as_str(), line, column),
            SourceLocation::Rust(at) => (at.file(), at.line(), at.column()),
        };
        let known = self.files.iter().position(|known| known == file);
        let file = known.unwrap_or_else(|| {
            let file = file.to_owned();
            self.files.push(file);
            self.files.len() - 1
        });
        let here = Some((file, line, column));
        (self.current != here).then(|| {
            self.current = here;
            format!(".loc {} {line} {column}", file + 1)
        })
    }

    /// The `.file` of every file that was named.
    pub(super) fn files(&self) -> String {
        let mut text = String::new();
        for (at, file) in self.files.iter().enumerate() {
            let escaped = file.replace('\\', "\\\\").replace('"', "\\\"");
            // Writing to a string cannot fail.
            let _ = writeln!(text, ".file {} \"{escaped}\"", at + 1);
        }
        text
    }
}

impl Writer<'_> {
    /// Writes the source location of the instructions that follow, if line information is emitted.
    pub(super) fn locate(&mut self, location: SourceLocation) {
        if let Some(line) = self.lines.as_mut().and_then(|lines| lines.locate(location)) {
            let _ = writeln!(self.body, "    {line}");
        }
    }
}
