//! Names as numbers.

use std::collections::HashMap;

use crate::record::TraceLine;

/// A name that a [`NameTable`] has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct NameId(u32);

/// A line that a [`NameTable`] has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct LineId {
    file: NameId,
    line: u32,
}

/// Names that are kept once.
#[derive(Default)]
pub(super) struct NameTable {
    numbers: HashMap<Box<str>, NameId>,
    names: Vec<Box<str>>,
}

impl NameTable {
    pub(super) fn name(&mut self, name: &str) -> NameId {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let id = NameId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.numbers.insert(name.into(), id);
        self.names.push(name.into());
        id
    }

    pub(super) fn line(&mut self, line: Option<TraceLine<'_>>) -> Option<LineId> {
        line.map(|line| LineId { file: self.name(line.file), line: line.line })
    }

    pub(super) fn text(&self, name: NameId) -> String {
        self.names.get(name.0 as usize).map(|name| name.to_string()).unwrap_or_default()
    }

    pub(super) fn line_text(&self, line: Option<LineId>) -> Option<String> {
        line.map(|line| format!("{}:{}", self.text(line.file), line.line))
    }
}
