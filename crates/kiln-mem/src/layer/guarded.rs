//! Finds writes out of bounds and after free, by filling and checking memory around blocks.
//!
//! ```text
//!   inner block   | red zone | what the owner sees ...        | red zone |
//!   filled with     0xFD       0xCD, then by the owner, then    0xFD
//!                              0xDD while in quarantine
//! ```
//!
//! Every block gets a red zone before and after it. Zones are looked at when the block is freed and on demand. A freed block is filled and
//! kept in quarantine before it is freed below; a write to it is found when it leaves. Each fill and each look waits for the block's stream
//! on the host, so this is for finding bugs and not for production.

mod checker;
mod device_bytes;
mod finding;
mod table;

use std::fmt;
use std::sync::Arc;

use kiln_driver::{Driver, Timeout};

use super::free_below;
use crate::block::{DeviceBlock, ResourceKey};
use crate::byte_size::ByteSize;
use crate::error::{Error, ErrorKind, FreeError, MemoryRefusal, Result};
use crate::last_use::{NO_USES, Stamps};
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::stream_order::Order;
pub use checker::GuardChecker;
pub use finding::{Damage, GuardFinding};
use table::{GuardedBlock, Quarantined};

/// What red zones are filled with.
const ZONE_BYTE: u8 = 0xfd;
/// What a new block is filled with.
const NEW_BYTE: u8 = 0xcd;
/// What a freed block is filled with.
const FREED_BYTE: u8 = 0xdd;

/// How a guard is set up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GuardConfig {
    /// Bytes of each red zone; more where the alignment wants it.
    pub zone_bytes: u64,
    /// Bytes of freed blocks that are kept and watched; 0 keeps none.
    pub quarantine_bytes: u64,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self { zone_bytes: 256, quarantine_bytes: 64 << 20 }
    }
}

/// Watches blocks for writes outside of them and after their end; [`checker`](Self::checker) reads what was found.
pub struct Guarded<R: MemoryResource> {
    key: ResourceKey,
    config: GuardConfig,
    order: Arc<dyn Order>,
    checker: GuardChecker,
    inner: R,
}

impl<R: MemoryResource> Guarded<R> {
    /// Puts a guard around a resource of device memory.
    pub fn new(config: GuardConfig, driver: Arc<dyn Driver>, order: Arc<dyn Order>, inner: R) -> Self {
        Self { key: ResourceKey::fresh(), config, order, checker: GuardChecker::new(driver), inner }
    }

    /// The blocks, and what was found in them.
    pub fn checker(&self) -> &GuardChecker {
        &self.checker
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// It does not watch host memory, and says so rather than watch nothing.
    pub(crate) fn host_memory() -> ErrorKind {
        let what = "a guard watches device memory and this is the host's".to_owned();
        MemoryRefusal::Unsupported { what, next: "leave it out" }.into()
    }

    /// Gives a block to the resource below.
    fn pass_down(
        &self,
        guarded: &GuardedBlock,
        block: DeviceBlock,
        uses: &Stamps,
    ) -> std::result::Result<(), FreeError> {
        let _releasing = self.checker.hold_releases();
        self.inner.deallocate(block, uses)?;
        self.checker.end_name(guarded);
        Ok(())
    }

    /// Takes blocks out of quarantine until `keep_bytes` are left, looks at them, and frees them. One that cannot be looked at or freed
    /// stays.
    fn release(&self, keep_bytes: u64) -> Result<u64> {
        let mut released = 0;
        loop {
            let Some(Quarantined { guarded, block }) = self.checker.table().take_oldest(keep_bytes) else {
                return Ok(released);
            };
            let bytes = block.bytes();
            let failed = match self.checker.check_freed(&guarded) {
                Ok(found) => match self.pass_down(&guarded, block, &NO_USES) {
                    Ok(()) => {
                        self.checker.table().findings.extend(found);
                        released += bytes;
                        continue;
                    }
                    Err(failed) => failed,
                },
                Err(error) => FreeError { block, error },
            };
            self.checker.table().return_oldest(Quarantined { guarded, block: failed.block });
            return Err(failed.error);
        }
    }

    /// A block from below, if need be in exchange for what is in quarantine.
    fn allocate_below(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let error = match self.inner.allocate(request) {
            Err(error) if error.is_oom() => error,
            allocated => return allocated,
        };
        match self.release(0) {
            Ok(0) => Err(error),
            Err(failed) if failed.is_sticky() => Err(failed),
            // One that could not be freed stays; those before it are free.
            Ok(_) | Err(_) => self.inner.allocate(request),
        }
    }

    /// Looks at a block that is being freed, and fills it.
    fn retire(&self, guarded: &GuardedBlock, uses: &Stamps) -> Result<()> {
        for stamp in uses.iter() {
            let _ = self.order.wait(stamp, Timeout::Never)?;
        }
        if let Some(finding) = self.checker.check_zones(guarded)? {
            self.checker.table().mark_reported(guarded.id);
            return Err(Error::corrupt(finding.to_string()));
        }
        self.checker.table().grow_quarantine()?;
        self.checker.fill_freed(guarded)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Guarded<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let is_fine = request.align.is_power_of_two() && request.align <= AllocationRequest::MAX_ALIGN;
        if request.bytes == 0 || !is_fine {
            // Nothing to guard, or something for the resource below to refuse.
            return Ok(self.inner.allocate(request)?.rebound(self.key));
        }
        let Some((zone, outer_bytes)) = outer_size(&self.config, request) else {
            return Err(ErrorKind::from(MemoryRefusal::Size(request.bytes)).into());
        };
        let outer = self.allocate_below(&request.bytes(outer_bytes))?;
        let Some(place) = outer.device_place() else {
            self.inner.deallocate(outer, &NO_USES).map_err(|failed| failed.error)?;
            return Err(Self::host_memory().into());
        };
        let guarded = self.checker.name(GuardedBlock::new(&outer, request, zone, place));
        let entered = guarded.and_then(|guarded| {
            let filled = self.checker.fill_new(&guarded);
            let entered = filled.and_then(|()| Ok(self.checker.table().enter(guarded)?));
            entered.inspect_err(|_| self.checker.end_name(&guarded))
        });
        if let Err(error) = entered {
            // The block was never used; if it cannot be freed either, the device is lost.
            let _ = self.inner.deallocate(outer, &NO_USES);
            return Err(error);
        }
        Ok(outer.narrowed(zone, request.bytes).rebound(self.key))
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        let found = self.checker.table().find(block.id());
        let Some(guarded) = found else {
            if !block.is_empty() {
                // A block that has bytes is in the table until it is freed.
                return Err(FreeError::stale(block));
            }
            return free_below(block.rebound(self.inner.key()), uses, self.key, &self.inner);
        };
        if !guarded.reported
            && let Err(error) = self.retire(&guarded, uses)
        {
            return Err(FreeError { block, error });
        }
        let outer = block.widened(guarded.zone, guarded.bytes + 2 * guarded.zone).rebound(self.inner.key());
        if guarded.reported || self.config.quarantine_bytes == 0 {
            // Removed first: once the block is free, its address may be another block's.
            self.checker.table().remove(guarded.id);
            return self.pass_down(&guarded, outer, uses).map_err(|FreeError { block, error }| {
                self.checker.table().put_back(guarded);
                FreeError { block: block.narrowed(guarded.zone, guarded.bytes).rebound(self.key), error }
            });
        }
        self.checker.table().quarantine(guarded, outer);
        // An error here is about a block that was freed long ago; it is kept with the findings, or the device says it again.
        let _ = self.release(self.config.quarantine_bytes);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        let released = if step == ReclaimStep::ThreadCaches { self.release(0)? } else { 0 };
        Ok(Reclaimed::freed(released) + self.inner.reclaim(step)?)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::around(&self.inner).showing(&self.checker)
    }
}

impl<R: MemoryResource> Drop for Guarded<R> {
    /// Frees what is in quarantine: the resource below may outlive the guard.
    fn drop(&mut self) {
        loop {
            let Some(Quarantined { guarded, block }) = self.checker.table().take_oldest(0) else { break };
            // If it cannot be freed, the device is lost.
            let _ = self.inner.deallocate(block, &NO_USES);
            self.checker.end_name(&guarded);
        }
        for guarded in self.checker.table().live() {
            self.checker.end_name(&guarded);
        }
        self.checker.release();
    }
}

impl<R: MemoryResource> fmt::Display for Guarded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GuardConfig { zone_bytes, quarantine_bytes } = self.config;
        if self.config == GuardConfig::default() {
            return write!(f, "guard({})", self.inner);
        }
        write!(f, "guard({}, {}, {})", ByteSize(zone_bytes), ByteSize(quarantine_bytes), self.inner)
    }
}

/// Bytes of a red zone, and of the block with both; none if they cannot be counted.
fn outer_size(config: &GuardConfig, request: &AllocationRequest) -> Option<(u64, u64)> {
    let zone = config.zone_bytes.max(1).checked_next_multiple_of(request.align)?;
    Some((zone, request.bytes.checked_add(zone.checked_mul(2)?)?))
}
