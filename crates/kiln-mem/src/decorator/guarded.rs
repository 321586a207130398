//! Finding writes that should not have happened.
//!
//! ```text
//!   inner block   | red zone | what the owner sees ...        | red zone |
//!   filled with     0xFD       0xCD, then by the owner, then    0xFD
//!                              0xDD while in quarantine
//! ```
//!
//! Every block gets a red zone before and after it. Zones are looked at when the block is freed and on demand. A freed
//! block is filled and kept for a while before it is really freed; whoever writes to it then is found when it leaves.
//! Each fill and each look waits for the block's stream on the host, so this is for finding bugs and not for production.

mod device_bytes;
mod finding;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Driver, Timeout};

use super::free_below;
use crate::accounting::Accounting;
use crate::block::{DeviceBlock, ResourceKey};
use crate::byte_size::ByteSize;
use crate::error::{Error, ErrorKind, FreeError, Refusal, Result};
use crate::ladder::{Relief, Rung};
use crate::order::Order;
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::Stamps;
use device_bytes::DeviceBytes;
pub use finding::{Damage, GuardFinding};
use watch::{Quarantined, Watch, Watched};

/// What red zones are filled with.
const ZONE: u8 = 0xfd;
/// What a new block is filled with.
const FRESH: u8 = 0xcd;
/// What a freed block is filled with.
const DEAD: u8 = 0xdd;

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

/// Watches blocks for writes outside of them and after their end.
pub struct Guarded<R: MemoryResource> {
    key: ResourceKey,
    config: GuardConfig,
    order: Arc<dyn Order>,
    bytes: DeviceBytes,
    watch: Mutex<Watch>,
    /// Held while all blocks are looked at, and while one goes to the resource below: its memory may be somebody else's
    /// right after, and what is written there then is no damage.
    passage: Mutex<()>,
    inner: R,
}

impl<R: MemoryResource> Guarded<R> {
    /// Puts a guard around a resource of device memory.
    pub fn new(config: GuardConfig, driver: Arc<dyn Driver>, order: Arc<dyn Order>, inner: R) -> Self {
        let (bytes, watch, passage) = (DeviceBytes::new(driver), Mutex::default(), Mutex::default());
        Self { key: ResourceKey::fresh(), config, order, bytes, watch, passage, inner }
    }

    /// Looks at all live blocks and at those in quarantine. Blocks that other threads free meanwhile stay until it is done.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub fn check(&self) -> Result<Vec<GuardFinding>> {
        let _passage = self.passage();
        let (live, dead) = {
            let watch = self.watch();
            (watch.live(), watch.quarantined())
        };
        let mut findings = Vec::new();
        for watched in live {
            findings.extend(self.look_at_zones(&watched)?);
        }
        for watched in dead {
            findings.extend(self.look_at_zones(&watched)?);
            findings.extend(self.look_at_body(&watched)?);
        }
        Ok(findings)
    }

    /// What was found in blocks that left the quarantine, and since when nobody asked.
    pub fn take_findings(&self) -> Vec<GuardFinding> {
        std::mem::take(&mut self.watch().findings)
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// It does not watch host memory, and says so rather than watch nothing.
    pub(crate) fn host_memory() -> ErrorKind {
        let what = "a guard watches device memory and this is the host's".to_owned();
        Refusal::Unsupported { what, next: "leave it out" }.into()
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn passage(&self) -> MutexGuard<'_, ()> {
        self.passage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a block to the resource below.
    fn pass_down(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let _passage = self.passage();
        self.inner.deallocate(block, uses)
    }

    fn look_at_zones(&self, watched: &Watched) -> Result<Option<GuardFinding>> {
        let before = self.bytes.first_other(watched.front(), watched.zone, ZONE, watched.stream)?;
        if let Some(at) = before {
            return Ok(Some(watched.finding(Damage::Underrun { before: watched.zone - at })));
        }
        let after = self.bytes.first_other(watched.back(), watched.zone, ZONE, watched.stream)?;
        Ok(after.map(|past| watched.finding(Damage::Overrun { past })))
    }

    fn look_at_body(&self, watched: &Watched) -> Result<Option<GuardFinding>> {
        let written = self.bytes.first_other(watched.body(), watched.bytes, DEAD, watched.stream)?;
        Ok(written.map(|offset| watched.finding(Damage::UseAfterFree { offset })))
    }

    /// Takes blocks out of quarantine until so many bytes are left, looks at them, and frees them. One that cannot be looked
    /// at or freed stays.
    fn release(&self, keep_bytes: u64) -> Result<u64> {
        let mut released = 0;
        loop {
            let Some(Quarantined { watched, block }) = self.watch().leave(keep_bytes) else {
                return Ok(released);
            };
            let bytes = block.bytes();
            let failed = match self.look_at_dead(&watched) {
                Ok(found) => match self.pass_down(block, &Stamps::NONE) {
                    Ok(()) => {
                        self.watch().findings.extend(found);
                        released += bytes;
                        continue;
                    }
                    Err(failed) => failed,
                },
                Err(error) => FreeError { block, error },
            };
            self.watch().stay(Quarantined { watched, block: failed.block });
            return Err(failed.error);
        }
    }

    fn look_at_dead(&self, watched: &Watched) -> Result<Option<GuardFinding>> {
        match self.look_at_body(watched)? {
            None => self.look_at_zones(watched),
            found => Ok(found),
        }
    }

    /// A block from below, if need be in exchange for what is in quarantine.
    fn allocate_below(&self, request: &Request) -> Result<DeviceBlock> {
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

    /// Looks at a block that is being freed, fills it, and puts it into quarantine.
    fn retire(&self, watched: &Watched, uses: &Stamps) -> Result<()> {
        for stamp in uses.as_slice() {
            let _ = self.order.wait(*stamp, Timeout::Never)?;
        }
        if let Some(finding) = self.look_at_zones(watched)? {
            self.watch().forgive(watched.id);
            return Err(Error::corrupt(finding.to_string()));
        }
        self.bytes.fill(watched.body(), watched.bytes, DEAD, watched.stream)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Guarded<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &Request) -> Result<DeviceBlock> {
        let is_fine = request.align.is_power_of_two() && request.align <= Request::MAX_ALIGN;
        if request.bytes == 0 || !is_fine {
            // Nothing to guard, or something for the resource below to refuse.
            return Ok(self.inner.allocate(request)?.rebound(self.key));
        }
        let Some((zone, outer_bytes)) = outer_size(&self.config, request) else {
            return Err(ErrorKind::from(Refusal::Size(request.bytes)).into());
        };
        let outer = self.allocate_below(&request.bytes(outer_bytes))?;
        let Some(place) = outer.device_place() else {
            self.inner.deallocate(outer, &Stamps::NONE).map_err(|failed| failed.error)?;
            return Err(Self::host_memory().into());
        };
        let watched = Watched::new(&outer, request, zone, place);
        let filled = self
            .bytes
            .fill(watched.front(), outer_bytes, ZONE, request.stream)
            .and_then(|()| self.bytes.fill(watched.body(), request.bytes, FRESH, request.stream));
        if let Err(error) = filled {
            // The block was never used; if it cannot be freed either, the device is lost.
            let _ = self.inner.deallocate(outer, &Stamps::NONE);
            return Err(error);
        }
        self.watch().enter(watched);
        Ok(outer.narrowed(zone, request.bytes).rebound(self.key))
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        let watched = self.watch().find(block.id());
        let Some(watched) = watched else {
            if !block.is_empty() {
                // Whatever has bytes is watched until it is freed.
                return Err(FreeError::stale(block));
            }
            return free_below(block.rebound(self.inner.key()), uses, self.key, &self.inner);
        };
        if !watched.forgiven
            && let Err(error) = self.retire(&watched, uses)
        {
            return Err(FreeError { block, error });
        }
        let outer = block.widened(watched.zone, watched.bytes + 2 * watched.zone).rebound(self.inner.key());
        if watched.forgiven || self.config.quarantine_bytes == 0 {
            // Forgotten first: once the block is free, its address may be somebody else's.
            self.watch().forget(watched.id);
            return self.pass_down(outer, uses).map_err(|FreeError { block, error }| {
                self.watch().remember(watched);
                FreeError { block: block.narrowed(watched.zone, watched.bytes).rebound(self.key), error }
            });
        }
        self.watch().bury(watched, outer);
        // What goes wrong here is the fault of blocks freed long ago; it is kept with the findings or said by the device.
        let _ = self.release(self.config.quarantine_bytes);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reap(&self, rung: Rung) -> Result<Relief> {
        let released = if rung == Rung::FrontCaches { self.release(0)? } else { 0 };
        Ok(Relief::freed(released) + self.inner.reap(rung)?)
    }
}

impl<R: MemoryResource> Drop for Guarded<R> {
    /// Frees what is in quarantine: the resource below may outlive the guard.
    fn drop(&mut self) {
        while let Some(Quarantined { block, .. }) = self.watch().leave(0) {
            // If it cannot be freed, the device is lost.
            let _ = self.inner.deallocate(block, &Stamps::NONE);
        }
        self.bytes.release();
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
fn outer_size(config: &GuardConfig, request: &Request) -> Option<(u64, u64)> {
    let zone = config.zone_bytes.max(1).checked_next_multiple_of(request.align)?;
    Some((zone, request.bytes.checked_add(zone.checked_mul(2)?)?))
}
