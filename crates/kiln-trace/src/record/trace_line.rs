//! A line of the program.

use std::fmt;

use crate::format::{FieldDecoder, FieldEncoder, Malformed};
use crate::plain_text::Plain;

/// The line of the program that asked for something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TraceLine<'a> {
    /// The file, as the compiler names it.
    pub file: &'a str,
    /// The line, from 1.
    pub line: u32,
}

impl<'a> TraceLine<'a> {
    /// A line, or none: an empty file name stands for it.
    pub(crate) fn encode(line: Option<Self>, to: &mut FieldEncoder) {
        let line = line.filter(|line| !line.file.is_empty());
        to.name(line.map_or("", |line| line.file));
        if let Some(line) = line {
            to.number(line.line.into());
        }
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Option<Self>, Malformed> {
        let file = from.name()?;
        if file.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { file, line: from.small()? }))
    }
}

/// In one line, whatever the name of the file has.
impl fmt::Display for TraceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Plain(self.file), self.line)
    }
}
