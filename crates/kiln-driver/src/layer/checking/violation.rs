//! Violations that the checking layer reports.

use std::fmt;

use crate::call::CallKind;

/// A rule a caller did not keep, or may not have kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The call that broke it.
    pub call: CallKind,
    /// The number of that call among all calls the layer saw, from 1.
    pub number: u64,
    /// The object it is about, as kind, slot and generation.
    pub object: String,
    /// What was seen, in words.
    pub why: String,
}

impl Violation {
    /// Whether the contract is broken, or the call is merely of no use.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, call, number, object, why } = self;
        write!(f, "{} in call {number} ({}): {object}: {why}; {}", rule.severity(), call.name(), rule.next())
    }
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Allowed and defined, but probably a mistake.
    Warning,
    /// The caller's side of the contract is broken; what happens is not defined by the driver interface.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The rules of the caller's side that can be seen from outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// Memory, a module, a graph or an event was taken back, or a mapping taken out, under work that names it and is not
    /// known to be done.
    UsedWhenTakenBack,
    /// Two commands touch the same bytes, one of them writing, and nothing orders them.
    Unordered,
    /// Two commands touch the same block, one of them writing, and nothing orders them; one is a launch, of which it is not known which bytes of the
    /// block it touches. Only of a layer that [follows launches](super::Checking::following_launches).
    MayBeUnordered,
    /// Pool memory is used or freed on a stream that is not ordered after its allocation, or freed on one that is not
    /// ordered after its uses.
    PoolOrder,
    /// The two ranges of a copy overlap.
    Overlap,
    /// A command names bytes of a reservation with nothing mapped there.
    Unmapped,
    /// A command writes to pages that are mapped for reading only.
    ReadOnly,
    /// Two nodes of a graph touch the same bytes, one of them writing, and no edge orders them.
    UnorderedNodes,
    /// A handle whose object is gone; the driver refuses it.
    Stale,
    /// A wait for an event that was never signalled, which waits for nothing.
    NeverSignalled,
}

impl Rule {
    /// Whether breaking it breaks the contract.
    pub fn severity(self) -> Severity {
        match self {
            Self::Stale | Self::NeverSignalled | Self::MayBeUnordered => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// What to do about it.
    pub fn next(self) -> &'static str {
        match self {
            Self::UsedWhenTakenBack => "wait for the work, or ask for its progress, before the object goes",
            Self::Unordered => "order the two by a stream, by an event or by waiting in between",
            Self::MayBeUnordered => "order the two, unless they touch different bytes",
            Self::PoolOrder => "order the stream after the other one by an event",
            Self::Overlap => "copy through a third place",
            Self::Unmapped => "map pages there first",
            Self::ReadOnly => "protect the range for writing first",
            Self::UnorderedNodes => "give the later node an edge from the earlier one",
            Self::Stale => "keep the handle's owner alive while it is used",
            Self::NeverSignalled => "signal the event before it is waited for",
        }
    }
}

/// An object that was made through the layer and not taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveObject {
    /// Kind, slot and generation.
    pub object: String,
    /// The call that made it.
    pub made_by: CallKind,
    /// The number of that call among all calls the layer saw, from 1.
    pub number: u64,
}

impl fmt::Display for LiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is still there; call {} ({}) made it", self.object, self.number, self.made_by.name())
    }
}
