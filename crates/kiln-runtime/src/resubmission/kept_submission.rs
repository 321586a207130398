//! A submission that is kept so that it can be submitted again.

use std::ops::Range;

use kiln_driver::{Access, Base, Command, HostId, Place};
use kiln_order::Stamp;

use super::kept_command::KeptCommand;
use super::uses_module_variables::Variables;
use crate::ids::BlockId;

/// A submission: what it does, and what it declared to use.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(super) stamp: Stamp,
    /// Its place among the submissions of all streams.
    pub(super) sequence: u64,
    pub(super) accesses: Vec<Declared>,
    pub(super) commands: Vec<KeptCommand>,
    /// Pinned memory that it copies to, also where its commands are not kept.
    pub(super) host_writes: Vec<HostId>,
    /// Why it must not be done again.
    pub(super) hindrance: Option<&'static str>,
}

/// A declared use of bytes of a block.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// None for memory of the host.
    pub(super) block: Option<BlockId>,
    pub(super) range: Range<u64>,
    pub(super) access: Access,
}

impl Record {
    pub(super) fn new(
        stamp: Stamp,
        sequence: u64,
        accesses: Vec<Declared>,
        hindrance: Option<&'static str>,
    ) -> Self {
        Self { stamp, sequence, accesses, commands: Vec::new(), host_writes: Vec::new(), hindrance }
    }

    /// Which submission it is.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Adds a part of its work.
    pub(super) fn add(&mut self, command: &Command<'_>, variables: &Variables) {
        if let Command::Copy { to: Place::Host { block, .. }, .. } = command {
            self.host_writes.push(*block);
        }
        if self.hindrance.is_some() {
            return;
        }
        let hindrance = match command {
            Command::Launch(launch) => variables.hindrance(launch.function),
            Command::Copy { from, to, .. } => self.hindrance_of_copy(from, to),
            _ => None,
        };
        match (hindrance, KeptCommand::of(command)) {
            (None, Ok(command)) => self.commands.push(command),
            (Some(hindrance), _) | (None, Err(hindrance)) => self.hinder(hindrance),
        }
    }

    /// It must not be done again, so nothing is kept of it but what it uses.
    pub(super) fn hinder(&mut self, hindrance: &'static str) {
        self.hindrance = Some(hindrance);
        self.commands = Vec::new();
    }

    /// Pinned memory that it copies from. The program cannot change it meanwhile: a write waits for the copy.
    pub(super) fn host_reads(&self) -> impl Iterator<Item = HostId> {
        self.commands.iter().filter_map(|command| match command {
            KeptCommand::Copy { from: Place::Host { block, .. }, .. } => Some(*block),
            _ => None,
        })
    }

    fn hindrance_of_copy(&self, from: &Place, to: &Place) -> Option<&'static str> {
        let of_worker = |place: &Place| match place {
            Place::Device(place) => matches!(place.base, Base::Memory(_)),
            Place::Host { .. } => false,
            Place::Peer(_) => true,
        };
        let staged = |block: HostId| {
            let uses = |place: &Place| matches!(place, Place::Host { block: used, .. } if *used == block);
            let mut copies = self.commands.iter();
            copies.any(
                |command| matches!(command, KeptCommand::Copy { from, to, .. } if uses(from) || uses(to)),
            )
        };
        match (from, to) {
            _ if of_worker(from) || of_worker(to) => Some("it uses memory that ended with its worker"),
            (Place::Host { block, .. }, _) | (_, Place::Host { block, .. }) if staged(*block) => {
                Some("it came through less staging memory than it has bytes")
            }
            _ => None,
        }
    }

    /// Which of its accesses leave nothing of what was there: those of one copy or fill, or of several that lie side by side. A kernel that
    /// declares to overwrite a block may leave bytes of it as they are.
    pub(super) fn overwrites(&self) -> Option<&Declared> {
        let mut writes = self.accesses.iter().filter(|declared| declared.access.writes());
        let (Some(only), None) = (writes.next(), writes.next()) else { return None };
        let mut pieces = self.commands.iter().map(KeptCommand::overwrites).collect::<Option<Vec<_>>>()?;
        pieces.sort_unstable_by_key(|(place, _)| place.offset);
        let (first, _) = pieces.first()?;
        let mut end = first.offset;
        for (place, bytes) in &pieces {
            if place.base != first.base || place.offset != end {
                return None;
            }
            end = end.saturating_add(*bytes);
        }
        let whole = end - first.offset == only.range.end - only.range.start;
        (only.access == Access::Write && whole).then_some(only)
    }
}
