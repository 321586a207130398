//! What submitted work is called.

use std::panic::Location;

use kiln_driver::{Command, Place};
use kiln_trace::{LaunchSize, SubmissionKind, TraceLine};

use super::work_context::{self, CollectiveLabel};

/// What submitted work is called in a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkLabel {
    pub(crate) kind: SubmissionKind,
    pub(crate) name: &'static str,
    pub(crate) line: Option<TraceLine<'static>>,
    pub(crate) size: Option<LaunchSize>,
    pub(crate) bytes: u64,
    pub(crate) collective: Option<CollectiveLabel>,
}

impl WorkLabel {
    /// Work of a kind.
    pub(crate) fn new(kind: SubmissionKind, name: &'static str, bytes: u64) -> Self {
        Self { kind, name, line: None, size: None, bytes, collective: None }
    }

    /// The same with the line that asked for it.
    pub(crate) fn at(self, line: &'static Location<'static>) -> Self {
        Self { line: Some(TraceLine { file: line.file(), line: line.line() }), ..self }
    }

    /// The same with what the call around it knows: its line is that of the program.
    pub(super) fn in_context(self) -> Self {
        let mut label = match work_context::line() {
            Some(line) => self.at(line),
            None => self,
        };
        if let Some(collective) = work_context::collective() {
            label.kind = SubmissionKind::Collective;
            label.bytes = collective.bytes;
            label.collective = Some(collective);
        }
        label
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
                Some(Self::new(SubmissionKind::Copy, name, *bytes))
            }
            Command::Fill { pattern, count, .. } => {
                Some(Self::new(SubmissionKind::Fill, "fill", pattern.bytes().saturating_mul(*count)))
            }
            Command::Launch(_) => Some(Self::new(SubmissionKind::Kernel, "launch", 0)),
            Command::Graph(_) => Some(Self::new(SubmissionKind::Graph, "graph", 0)),
            _ => None,
        }
    }
}
