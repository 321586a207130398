//! Allocates each block with a call of the driver (`cuMemAlloc`).

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Base, Driver, MemoryId, MemoryRequest, Place};

use crate::allocate_or_reclaim::obtain;
use crate::block::{BlockToken, DeviceBlock, ResourceKey};
use crate::error::{ErrorKind, FreeError, MemoryRefusal, Result};
use crate::last_use::{Stamps, StreamKey};
use crate::layer_view::LayerView;
use crate::pending_frees::{Pending, PendingFrees};
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::stream_order::Order;
use crate::try_reserve::TryGrow;

/// `cuMemAlloc` and `cuMemFree`: slow, and without surprises.
///
/// Memory is freed once everything that may use it is done; until then it is pending.
pub struct Direct {
    key: ResourceKey,
    driver: Arc<dyn Driver>,
    order: Arc<dyn Order>,
    /// The stream each block is for.
    live: Mutex<HashMap<MemoryId, StreamKey>>,
    pending: PendingFrees,
    live_bytes: AtomicU64,
    live_blocks: AtomicU64,
    peak_bytes: AtomicU64,
    reserved_bytes: AtomicU64,
    peak_reserved_bytes: AtomicU64,
}

impl Direct {
    /// Memory of a driver.
    pub fn new(driver: Arc<dyn Driver>, order: Arc<dyn Order>) -> Self {
        Self {
            key: ResourceKey::fresh(),
            driver,
            order,
            live: Mutex::default(),
            pending: PendingFrees::default(),
            live_bytes: AtomicU64::new(0),
            live_blocks: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            peak_reserved_bytes: AtomicU64::new(0),
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<MemoryId, StreamKey>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a new block down. If the host has no memory for that, the block, which was never used, is freed.
    fn enter(&self, memory: MemoryId, stream: StreamKey) -> Result<()> {
        let mut live = self.live();
        if let Err(error) = live.try_grow(1) {
            drop(live);
            let _ = self.driver.free(memory, None);
            return Err(error.into());
        }
        live.insert(memory, stream);
        Ok(())
    }

    fn free(&self, memory: MemoryId, bytes: u64) -> Result<()> {
        self.driver.free(memory, None)?;
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Frees what is pending and done; returns the bytes.
    fn free_done(&self) -> Result<u64> {
        self.pending.free_done(&*self.order, |memory, bytes| self.free(memory, bytes))
    }
}

#[deny(clippy::missing_trait_methods)]
impl MemoryResource for Direct {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let (align, most) = (request.align, self.driver.info().limits.allocation_alignment_bytes.max(1));
        if !align.is_power_of_two() || align > most {
            return Err(ErrorKind::from(MemoryRefusal::Alignment { align, most }).into());
        }
        let mut block = DeviceBlock::vacant(self.key, request)?;
        let bytes = request.bytes;
        if bytes > 0 {
            self.free_done()?;
            let ask = || self.driver.allocate(MemoryRequest::Direct { bytes });
            let memory =
                obtain(self, bytes, ReclaimStep::Completed, || self.pending.until(&*self.order), ask)?;
            self.enter(memory.id, request.stream.key())?;
            let reserved = self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            self.peak_reserved_bytes.fetch_max(reserved, Ordering::Relaxed);
            block = block.placed(Place::Device(memory.id.into()), memory.address, BlockToken::default());
        }
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        self.live_blocks.fetch_add(1, Ordering::Relaxed);
        Ok(block)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        if let Some(Base::Memory(memory)) = block.device_place().map(|place| place.base) {
            // Removed first, so that no other thread frees it meanwhile.
            let Some(stream) = self.live().remove(&memory) else { return Err(FreeError::stale(block)) };
            let pending = Pending::new(memory, block.bytes(), stream, uses, &*self.order);
            if !pending.is_done(&*self.order) {
                self.pending.push(pending);
            } else if let Err(error) = self.free(memory, block.bytes()) {
                self.live().insert(memory, stream);
                return Err(FreeError { block, error });
            }
        }
        self.live_bytes.fetch_sub(block.bytes(), Ordering::Relaxed);
        self.live_blocks.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        Accounting {
            live_bytes: self.live_bytes.load(Ordering::Relaxed),
            live_blocks: self.live_blocks.load(Ordering::Relaxed),
            peak_live_bytes: self.peak_bytes.load(Ordering::Relaxed),
            pending_bytes: self.pending.bytes(),
            reserved_bytes: self.reserved_bytes.load(Ordering::Relaxed),
            peak_reserved_bytes: self.peak_reserved_bytes.load(Ordering::Relaxed),
            ..Accounting::default()
        }
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        match step {
            ReclaimStep::Completed => {
                self.pending.refresh(&*self.order)?;
                Ok(Reclaimed::released(self.free_done()?))
            }
            _ => Ok(Reclaimed::default()),
        }
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::base().showing(self)
    }
}

impl Drop for Direct {
    /// Waits for what is pending and frees it, and frees what is still live where the work of its stream is done; otherwise it is left to
    /// the device, because it is not known what uses it.
    fn drop(&mut self) {
        self.pending.free_all(&*self.order, |memory, bytes| self.free(memory, bytes));
        let live = std::mem::take(&mut *self.live());
        for (memory, _) in live.into_iter().filter(|(_, stream)| self.order.is_idle(*stream)) {
            let _ = self.driver.free(memory, None);
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("direct")
    }
}
