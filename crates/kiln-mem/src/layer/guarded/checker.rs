//! Looking for writes outside of blocks and after their end.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Driver, MemoryPart, MemoryRequest, PartKind, PartLabel};

use super::device_bytes::DeviceBytes;
use super::finding::{Damage, GuardFinding};
use super::table::{GuardTable, GuardedBlock};
use super::{FREED_BYTE, NEW_BYTE, ZONE_BYTE};
use crate::error::Result;

/// The blocks of a guard: live ones and those in quarantine.
pub struct GuardChecker {
    bytes: DeviceBytes,
    table: Mutex<GuardTable>,
    /// Held while all blocks are looked at, and while one goes to the resource below: its memory may be another block's right after, and
    /// what is written there then is no damage.
    releasing: Mutex<()>,
}

impl GuardChecker {
    pub(super) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { bytes: DeviceBytes::new(driver), table: Mutex::default(), releasing: Mutex::default() }
    }

    /// Looks at all live blocks and at those in quarantine. Blocks that other threads free meanwhile stay until it is done.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn check(&self) -> Result<Vec<GuardFinding>> {
        let _releasing = self.hold_releases();
        let (live, quarantined) = {
            let table = self.table();
            (table.live(), table.quarantined())
        };
        let mut findings = Vec::new();
        for guarded in live {
            findings.extend(self.check_zones(&guarded)?);
        }
        for guarded in quarantined {
            findings.extend(self.check_zones(&guarded)?);
            findings.extend(self.check_body(&guarded)?);
        }
        Ok(findings)
    }

    /// What was found in blocks that left the quarantine since the last call.
    pub fn take_findings(&self) -> Vec<GuardFinding> {
        std::mem::take(&mut self.table().findings)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, GuardTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps blocks from going to the resource below.
    pub(super) fn hold_releases(&self) -> MutexGuard<'_, ()> {
        self.releasing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the red zones of a block.
    pub(super) fn check_zones(&self, guarded: &GuardedBlock) -> Result<Option<GuardFinding>> {
        let GuardedBlock { zone, stream, .. } = *guarded;
        let before = self.bytes.first_other(guarded.front_zone(), zone, ZONE_BYTE, stream)?;
        if let Some(at) = before {
            return Ok(Some(guarded.finding(Damage::Underrun { before: zone - at })));
        }
        let after = self.bytes.first_other(guarded.back_zone(), zone, ZONE_BYTE, stream)?;
        Ok(after.map(|past| guarded.finding(Damage::Overrun { past })))
    }

    /// Looks at a block in quarantine.
    pub(super) fn check_freed(&self, guarded: &GuardedBlock) -> Result<Option<GuardFinding>> {
        match self.check_body(guarded)? {
            None => self.check_zones(guarded),
            found => Ok(found),
        }
    }

    /// Names a block and its zones to a device that checks accesses: what the guard does by that name is no use by an owner.
    pub(super) fn name(&self, guarded: GuardedBlock) -> Result<GuardedBlock> {
        let driver = self.bytes.driver();
        if !driver.info().features.access_checks {
            return Ok(guarded);
        }
        let part = driver.allocate(MemoryRequest::Part(MemoryPart {
            place: guarded.front_zone(),
            bytes: guarded.bytes + 2 * guarded.zone,
            stream: None,
            kind: PartKind::Inspection,
            label: PartLabel::new("guard"),
        }))?;
        Ok(guarded.named(part.id))
    }

    /// Ends the name of a block that went to the resource below.
    pub(super) fn end_name(&self, guarded: &GuardedBlock) {
        if let Some(part) = guarded.part {
            // A lost device has no names.
            let _ = self.bytes.driver().free(part, None);
        }
    }

    /// Fills a new block and its zones.
    pub(super) fn fill_new(&self, guarded: &GuardedBlock) -> Result<()> {
        let GuardedBlock { zone, bytes, stream, .. } = *guarded;
        self.bytes.fill(guarded.front_zone(), bytes + 2 * zone, ZONE_BYTE, stream)?;
        self.bytes.fill(guarded.body(), bytes, NEW_BYTE, stream)
    }

    /// Fills a freed block.
    pub(super) fn fill_freed(&self, guarded: &GuardedBlock) -> Result<()> {
        self.bytes.fill(guarded.body(), guarded.bytes, FREED_BYTE, guarded.stream)
    }

    /// Gives up what it reads bytes with.
    pub(super) fn release(&mut self) {
        self.bytes.release();
    }

    fn check_body(&self, guarded: &GuardedBlock) -> Result<Option<GuardFinding>> {
        let GuardedBlock { bytes, stream, .. } = *guarded;
        let written = self.bytes.first_other(guarded.body(), bytes, FREED_BYTE, stream)?;
        Ok(written.map(|offset| guarded.finding(Damage::UseAfterFree { offset })))
    }
}

impl fmt::Debug for GuardChecker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        let (live, quarantined) = (table.live().len(), table.quarantined().len());
        write!(f, "a guard of {live} live blocks and {quarantined} in quarantine")
    }
}
