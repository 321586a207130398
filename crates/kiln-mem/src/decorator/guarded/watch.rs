//! Which blocks are watched: those that are live, and those in quarantine.

use std::collections::{HashMap, VecDeque};

use kiln_driver::{DeviceAddress, DevicePlace};

use super::finding::{Damage, GuardFinding};
use crate::block::{BlockId, DeviceBlock};
use crate::request::Request;
use crate::stamp::StreamRef;
use crate::tag::AllocTag;

/// The books of a guard.
#[derive(Default)]
pub(super) struct Watch {
    live: HashMap<BlockId, Watched>,
    dead: VecDeque<Quarantined>,
    dead_bytes: u64,
    serial: u64,
    pub(super) findings: Vec<GuardFinding>,
}

/// A block with red zones.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub(super) id: BlockId,
    pub(super) serial: u64,
    pub(super) bytes: u64,
    pub(super) zone: u64,
    /// Where the first red zone begins.
    place: DevicePlace,
    pub(super) stream: StreamRef,
    tag: AllocTag,
    /// Whether it was reported as damaged already and may be freed now.
    pub(super) forgiven: bool,
}

/// A block that was freed by its owner and not yet below.
pub(super) struct Quarantined {
    pub(super) watched: Watched,
    pub(super) block: DeviceBlock,
}

impl Watched {
    pub(super) fn new(outer: &DeviceBlock, request: &Request, zone: u64, place: DevicePlace) -> Self {
        let Request { bytes, stream, tag, .. } = *request;
        let id = BlockId(DeviceAddress(outer.address().0 + zone));
        Self { id, serial: 0, bytes, zone, place, stream, tag, forgiven: false }
    }

    pub(super) fn front(&self) -> DevicePlace {
        self.place
    }

    pub(super) fn body(&self) -> DevicePlace {
        self.place.plus(self.zone)
    }

    pub(super) fn back(&self) -> DevicePlace {
        self.place.plus(self.zone + self.bytes)
    }

    pub(super) fn finding(&self, damage: Damage) -> GuardFinding {
        GuardFinding { block: self.id, serial: self.serial, bytes: self.bytes, tag: self.tag, damage }
    }
}

impl Watch {
    pub(super) fn enter(&mut self, watched: Watched) {
        self.serial += 1;
        self.live.insert(watched.id, Watched { serial: self.serial, ..watched });
    }

    pub(super) fn find(&self, id: BlockId) -> Option<Watched> {
        self.live.get(&id).copied()
    }

    pub(super) fn live(&self) -> Vec<Watched> {
        let mut live: Vec<Watched> = self.live.values().copied().collect();
        live.sort_by_key(|watched| watched.serial);
        live
    }

    pub(super) fn quarantined(&self) -> Vec<Watched> {
        self.dead.iter().map(|dead| dead.watched).collect()
    }

    /// Its damage was reported; the next free goes through.
    pub(super) fn forgive(&mut self, id: BlockId) {
        if let Some(watched) = self.live.get_mut(&id) {
            watched.forgiven = true;
        }
    }

    pub(super) fn forget(&mut self, id: BlockId) {
        self.live.remove(&id);
    }

    /// Enters a block again that could not be freed.
    pub(super) fn remember(&mut self, watched: Watched) {
        self.live.insert(watched.id, watched);
    }

    pub(super) fn bury(&mut self, watched: Watched, block: DeviceBlock) {
        self.live.remove(&watched.id);
        self.dead_bytes += block.bytes();
        self.dead.push_back(Quarantined { watched, block });
    }

    /// The oldest block in quarantine, if more than so many bytes are there.
    pub(super) fn leave(&mut self, keep_bytes: u64) -> Option<Quarantined> {
        if self.dead_bytes <= keep_bytes {
            return None;
        }
        let dead = self.dead.pop_front()?;
        self.dead_bytes -= dead.block.bytes();
        Some(dead)
    }

    /// Puts the oldest block back that could not be freed.
    pub(super) fn stay(&mut self, dead: Quarantined) {
        self.dead_bytes += dead.block.bytes();
        self.dead.push_front(dead);
    }
}
