//! Which blocks a guard watches: those that are live, and those in quarantine.

use std::collections::{HashMap, VecDeque};

use kiln_driver::{DeviceAddress, DevicePlace, MemoryId};

use super::finding::{Damage, GuardFinding};
use crate::block::{DeviceBlock, DeviceBlockId};
use crate::last_use::StreamRef;
use crate::request::AllocationRequest;
use crate::tag::AllocTag;
use crate::try_reserve::{HostOutOfMemory, TryGrow};

/// The blocks of a guard, and what was found in those that left the quarantine.
#[derive(Default)]
pub(super) struct GuardTable {
    live: HashMap<DeviceBlockId, GuardedBlock>,
    quarantine: VecDeque<Quarantined>,
    quarantine_bytes: u64,
    serial: u64,
    pub(super) findings: Vec<GuardFinding>,
}

/// A block with red zones.
#[derive(Clone, Copy)]
pub(super) struct GuardedBlock {
    pub(super) id: DeviceBlockId,
    pub(super) serial: u64,
    pub(super) bytes: u64,
    pub(super) zone: u64,
    /// Where the first red zone begins.
    place: DevicePlace,
    pub(super) stream: StreamRef,
    tag: AllocTag,
    /// The name of the block and its zones at a device that checks accesses: the guard uses memory that its owner has freed.
    pub(super) part: Option<MemoryId>,
    /// Whether its damage was reported already, so that the next free goes through.
    pub(super) reported: bool,
}

/// A block that was freed by its owner and not yet below.
pub(super) struct Quarantined {
    pub(super) guarded: GuardedBlock,
    pub(super) block: DeviceBlock,
}

impl GuardedBlock {
    pub(super) fn new(
        outer: &DeviceBlock,
        request: &AllocationRequest,
        zone: u64,
        place: DevicePlace,
    ) -> Self {
        let AllocationRequest { bytes, stream, tag, .. } = *request;
        let id = DeviceBlockId(DeviceAddress(outer.address().0 + zone));
        Self { id, serial: 0, bytes, zone, place, stream, tag, part: None, reported: false }
    }

    /// The same, reached by the name of the whole block.
    pub(super) fn named(self, part: MemoryId) -> Self {
        Self { place: part.into(), part: Some(part), ..self }
    }

    pub(super) fn front_zone(&self) -> DevicePlace {
        self.place
    }

    pub(super) fn body(&self) -> DevicePlace {
        self.place.plus(self.zone)
    }

    pub(super) fn back_zone(&self) -> DevicePlace {
        self.place.plus(self.zone + self.bytes)
    }

    pub(super) fn finding(&self, damage: Damage) -> GuardFinding {
        GuardFinding { block: self.id, serial: self.serial, bytes: self.bytes, tag: self.tag, damage }
    }
}

impl GuardTable {
    /// Enters a new block.
    pub(super) fn enter(&mut self, guarded: GuardedBlock) -> Result<(), HostOutOfMemory> {
        self.live.try_grow(1)?;
        self.serial += 1;
        self.live.insert(guarded.id, GuardedBlock { serial: self.serial, ..guarded });
        Ok(())
    }

    pub(super) fn find(&self, id: DeviceBlockId) -> Option<GuardedBlock> {
        self.live.get(&id).copied()
    }

    /// The live blocks, oldest first.
    pub(super) fn live(&self) -> Vec<GuardedBlock> {
        let mut live: Vec<GuardedBlock> = self.live.values().copied().collect();
        live.sort_by_key(|guarded| guarded.serial);
        live
    }

    /// The blocks in quarantine, oldest first.
    pub(super) fn quarantined(&self) -> Vec<GuardedBlock> {
        self.quarantine.iter().map(|quarantined| quarantined.guarded).collect()
    }

    /// Notes that the damage of a block was reported; the next free goes through.
    pub(super) fn mark_reported(&mut self, id: DeviceBlockId) {
        if let Some(guarded) = self.live.get_mut(&id) {
            guarded.reported = true;
        }
    }

    pub(super) fn remove(&mut self, id: DeviceBlockId) {
        self.live.remove(&id);
    }

    /// Enters a block again that could not be freed; its entry has just been removed, so there is room for it.
    pub(super) fn put_back(&mut self, guarded: GuardedBlock) {
        self.live.insert(guarded.id, guarded);
    }

    /// Makes room for one more block in quarantine.
    pub(super) fn grow_quarantine(&mut self) -> Result<(), HostOutOfMemory> {
        self.quarantine.try_grow(1)
    }

    /// Puts a freed block into quarantine.
    pub(super) fn quarantine(&mut self, guarded: GuardedBlock, block: DeviceBlock) {
        self.live.remove(&guarded.id);
        self.quarantine_bytes += block.bytes();
        self.quarantine.push_back(Quarantined { guarded, block });
    }

    /// The oldest block in quarantine, if more than `keep_bytes` are there.
    pub(super) fn take_oldest(&mut self, keep_bytes: u64) -> Option<Quarantined> {
        if self.quarantine_bytes <= keep_bytes {
            return None;
        }
        let oldest = self.quarantine.pop_front()?;
        self.quarantine_bytes -= oldest.block.bytes();
        Some(oldest)
    }

    /// Puts the oldest block back that could not be freed.
    pub(super) fn return_oldest(&mut self, oldest: Quarantined) {
        self.quarantine_bytes += oldest.block.bytes();
        self.quarantine.push_front(oldest);
    }
}
