//! Names of a recording as numbers, with totals of the work that bears them.

use std::collections::HashMap;

use kiln_trace::plain_text;
use serde::Serialize;

/// How many names are told apart. What comes later counts as [`OTHER`].
const MAX_NAMES: usize = 1 << 16;
/// The name of everything beyond.
const OTHER: &str = "(other names)";
/// Bytes of a name that are kept.
const MAX_BYTES: usize = 512;

/// A name of a table.
pub(crate) type NameId = u32;

/// A submission of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WorkPlace {
    /// The row of the timeline.
    pub row: u32,
    /// The number on its stream; of a thread, the number of its wait.
    pub number: u64,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What all work of one name took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct NameTotals {
    /// How often it was submitted.
    pub count: u64,
    /// How long it took altogether.
    pub total_ns: u64,
    /// The longest.
    pub longest: WorkPlace,
}

/// All names, each in one line.
#[derive(Default)]
pub(crate) struct NameTable {
    names: Vec<Box<str>>,
    totals: Vec<NameTotals>,
    ids: HashMap<Box<str>, NameId>,
}

impl NameTable {
    /// The number of a name, new or known.
    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        let name = plain_text(name);
        let name = clipped(&name);
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let name = if self.names.len() < MAX_NAMES { name } else { OTHER };
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len() as NameId;
        self.names.push(name.into());
        self.totals.push(NameTotals::default());
        self.ids.insert(name.into(), id);
        id
    }

    /// The number of a name that may be known.
    pub(crate) fn known(&self, name: &str) -> Option<NameId> {
        self.ids.get(clipped(&plain_text(name))).or_else(|| self.ids.get(OTHER)).copied()
    }

    /// Adds work of this name.
    pub(crate) fn count(&mut self, id: NameId, place: WorkPlace) {
        let Some(totals) = self.totals.get_mut(id as usize) else { return };
        let ns = place.end_ns.saturating_sub(place.begin_ns);
        let longest = totals.longest.end_ns.saturating_sub(totals.longest.begin_ns);
        if totals.count == 0 || ns > longest {
            totals.longest = place;
        }
        totals.count += 1;
        totals.total_ns = totals.total_ns.saturating_add(ns);
    }

    pub(crate) fn text(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }

    pub(crate) fn totals(&self, id: NameId) -> NameTotals {
        self.totals.get(id as usize).copied().unwrap_or_default()
    }

    /// Names from a number on.
    pub(crate) fn from(&self, first: usize) -> impl Iterator<Item = &str> {
        self.names.iter().skip(first).map(|name| &**name)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The names of work that contain a text, in any case.
    pub(crate) fn matching(&self, text: &str) -> Vec<NameId> {
        let text = text.to_lowercase();
        let all = (0..).zip(self.names.iter().zip(&self.totals));
        let found = all.filter(|(_, (name, totals))| totals.count > 0 && name.to_lowercase().contains(&text));
        found.map(|(id, _)| id).collect()
    }
}

/// A name without what is too long of it.
fn clipped(name: &str) -> &str {
    let mut end = name.len().min(MAX_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}
