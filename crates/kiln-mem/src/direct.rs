//! Memory straight from the driver, one call each.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Base, DeviceAddress, Driver, MemoryId, MemoryRequest, Place, Timeout};

use crate::accounting::Accounting;
use crate::block::{BlockParts, DeviceBlock, ResourceKey, Token};
use crate::driver_memory::obtain;
use crate::error::{ErrorKind, FreeError, Refusal, Result};
use crate::ladder::{Relief, Rung};
use crate::order::Order;
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::{Stamp, Stamps, StreamKey};

/// `cuMemAlloc` and `cuMemFree`: slow, and without surprises.
///
/// Memory is freed once everything that may use it is done; until then it is pending.
pub struct Direct {
    key: ResourceKey,
    driver: Arc<dyn Driver>,
    order: Arc<dyn Order>,
    live: Mutex<HashSet<MemoryId>>,
    pending: Mutex<VecDeque<Pending>>,
    live_bytes: AtomicU64,
    live_blocks: AtomicU64,
    peak_bytes: AtomicU64,
}

struct Pending {
    memory: MemoryId,
    bytes: u64,
    uses: Stamps,
    /// The last submission of the block's own stream.
    own: Stamp,
}

impl Pending {
    /// Everything it waits for.
    fn stamps(&self) -> impl Iterator<Item = Stamp> + '_ {
        let stamps = self.uses.as_slice().iter().chain([&self.own]);
        stamps.copied().filter(|stamp| stamp.number > 0)
    }
}

impl Direct {
    /// Memory of a driver.
    pub fn new(driver: Arc<dyn Driver>, order: Arc<dyn Order>) -> Self {
        Self {
            key: ResourceKey::fresh(),
            driver,
            order,
            live: Mutex::default(),
            pending: Mutex::default(),
            live_bytes: AtomicU64::new(0),
            live_blocks: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
        }
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, HashSet<MemoryId>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self, pending: &Pending) -> bool {
        pending.stamps().all(|stamp| self.order.is_complete(stamp))
    }

    /// The first submission that something pending waits for.
    fn pending_until(&self) -> Option<Stamp> {
        let pending = self.pending();
        pending.iter().flat_map(Pending::stamps).find(|stamp| !self.order.is_complete(*stamp))
    }

    /// Frees what is pending and done; returns the bytes.
    fn free_done(&self) -> Result<u64> {
        let mut freed = 0;
        loop {
            let next = {
                let mut pending = self.pending();
                pending.iter().position(|pending| self.is_done(pending)).and_then(|at| pending.remove(at))
            };
            let Some(done) = next else { return Ok(freed) };
            if let Err(error) = self.driver.free(done.memory, None) {
                self.pending().push_back(done);
                return Err(error.into());
            }
            freed += done.bytes;
        }
    }

    fn refresh(&self) -> Result<()> {
        let streams: Vec<StreamKey> = {
            let pending = self.pending();
            pending.iter().flat_map(Pending::stamps).map(|stamp| stamp.stream).collect()
        };
        for stream in streams {
            self.order.refresh(stream)?;
        }
        Ok(())
    }
}

#[deny(clippy::missing_trait_methods)]
impl MemoryResource for Direct {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &Request) -> Result<DeviceBlock> {
        let (align, most) = (request.align, self.driver.info().limits.allocation_alignment_bytes.max(1));
        if !align.is_power_of_two() || align > most {
            return Err(ErrorKind::from(Refusal::Alignment { align, most }).into());
        }
        let (place, address) = if request.bytes == 0 {
            (None, DeviceAddress(0))
        } else {
            self.free_done()?;
            let bytes = request.bytes;
            let ask = || self.driver.allocate(MemoryRequest::Direct { bytes });
            let memory = obtain(self, bytes, Rung::Completed, || self.pending_until(), ask)?;
            self.live().insert(memory.id);
            (Some(Place::Device(memory.id.into())), memory.address)
        };
        let live = self.live_bytes.fetch_add(request.bytes, Ordering::Relaxed) + request.bytes;
        self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        self.live_blocks.fetch_add(1, Ordering::Relaxed);
        let Request { bytes, stream, tag, .. } = *request;
        let parts = BlockParts { place, address, bytes, stream: stream.key, tag, token: Token::default() };
        Ok(DeviceBlock::new(self.key, parts))
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        if let Some(Base::Memory(memory)) = block.device_place().map(|place| place.base) {
            // Taken out first, so that nobody else frees it meanwhile.
            if !self.live().remove(&memory) {
                return Err(FreeError::stale(block));
            }
            let own = Stamp { stream: block.stream(), number: self.order.latest(block.stream()) };
            let pending = Pending { memory, bytes: block.bytes(), uses: *uses, own };
            if !self.is_done(&pending) {
                self.pending().push_back(pending);
            } else if let Err(error) = self.driver.free(memory, None) {
                self.live().insert(memory);
                return Err(FreeError::new(block, ErrorKind::from(error)));
            }
        }
        self.live_bytes.fetch_sub(block.bytes(), Ordering::Relaxed);
        self.live_blocks.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        let live_bytes = self.live_bytes.load(Ordering::Relaxed);
        let pending_bytes: u64 = self.pending().iter().map(|pending| pending.bytes).sum();
        let peak = self.peak_bytes.load(Ordering::Relaxed);
        Accounting {
            live_bytes,
            live_blocks: self.live_blocks.load(Ordering::Relaxed),
            peak_live_bytes: peak,
            pending_bytes,
            reserved_bytes: live_bytes + pending_bytes,
            peak_reserved_bytes: peak.max(live_bytes + pending_bytes),
            ..Accounting::default()
        }
    }

    fn reap(&self, rung: Rung) -> Result<Relief> {
        match rung {
            Rung::Completed => {
                self.refresh()?;
                Ok(Relief::released(self.free_done()?))
            }
            _ => Ok(Relief::default()),
        }
    }
}

impl Drop for Direct {
    /// Waits for what is pending and frees it.
    fn drop(&mut self) {
        let pending = std::mem::take(&mut *self.pending());
        for pending in pending {
            if pending.stamps().all(|stamp| self.order.wait(stamp, Timeout::Never).is_ok()) {
                let _ = self.driver.free(pending.memory, None);
            }
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("direct")
    }
}
