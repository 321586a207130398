//! What submitted work is called.

use std::panic::Location;

use kiln_driver::{Command, Place};
use kiln_trace::{KnownName, LaunchSize, SubmissionKind};

/// What submitted work is called in a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkLabel {
    pub(crate) kind: SubmissionKind,
    pub(crate) name: KnownName,
    pub(crate) line: Option<&'static Location<'static>>,
    pub(crate) size: Option<LaunchSize>,
    pub(crate) bytes: u64,
}

impl WorkLabel {
    /// Work of a kind.
    #[inline]
    pub(crate) fn new(kind: SubmissionKind, name: KnownName, bytes: u64) -> Self {
        Self { kind, name, line: None, size: None, bytes }
    }

    /// Work of a kind under the name of its kind.
    pub(crate) fn named(kind: SubmissionKind, name: &'static str, bytes: u64) -> Self {
        Self::new(kind, KnownName::of(name), bytes)
    }

    /// The same with the line that asked for it.
    #[inline]
    pub(crate) fn at(self, line: &'static Location<'static>) -> Self {
        Self { line: Some(line), ..self }
    }

    /// A command that is neither a launch nor a part of something larger; none for what is no work.
    pub(crate) fn of(command: &Command<'_>) -> Option<Self> {
        match command {
            Command::Copy { from, to, bytes } => {
                let name = match (from, to) {
                    (Place::Host { .. }, _) => "upload",
                    (_, Place::Host { .. }) => "download",
                    _ => "copy",
                };
                Some(Self::named(SubmissionKind::Copy, name, *bytes))
            }
            Command::Fill { pattern, count, .. } => {
                Some(Self::named(SubmissionKind::Fill, "fill", pattern.bytes().saturating_mul(*count)))
            }
            Command::Launch(_) => Some(Self::named(SubmissionKind::Kernel, "launch", 0)),
            Command::Graph(_) => Some(Self::named(SubmissionKind::Graph, "graph", 0)),
            _ => None,
        }
    }
}
