//! Names as numbers.

use std::collections::HashMap;
use std::sync::Arc;

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

/// Names that are told apart; the others are one.
const MAX_NAMES: usize = 1 << 16;
const OTHERS: &str = "(other names)";

/// Names that are kept once.
#[derive(Default)]
pub(super) struct NameTable {
    numbers: HashMap<Arc<str>, NameId>,
    names: Vec<Arc<str>>,
}

impl NameTable {
    pub(super) fn name(&mut self, name: &str) -> NameId {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        if self.names.len() >= MAX_NAMES {
            return NameId(u32::MAX);
        }
        let id = NameId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let name: Arc<str> = name.into();
        self.numbers.insert(name.clone(), id);
        self.names.push(name);
        id
    }

    pub(super) fn line(&mut self, line: Option<TraceLine<'_>>) -> Option<LineId> {
        line.map(|line| LineId { file: self.name(line.file), line: line.line })
    }

    pub(super) fn text(&self, name: NameId) -> String {
        self.names.get(name.0 as usize).map_or(OTHERS, |name| name).to_owned()
    }

    pub(super) fn line_text(&self, line: Option<LineId>) -> Option<String> {
        line.map(|line| format!("{}:{}", self.text(line.file), line.line))
    }
}
