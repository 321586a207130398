//! Stream-ordered allocation from the driver's memory pool (`cuMemAllocAsync`).

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kiln_driver::{Base, Driver, MemoryId, MemoryRequest, Object, Place, StreamId, StreamRequest};

use crate::allocate_or_reclaim::obtain;
use crate::block::{BlockToken, DeviceBlock, ResourceKey};
use crate::error::{ErrorKind, FreeError, MemoryRefusal, Result};
use crate::last_use::{Stamps, StreamRef};
use crate::layer_view::LayerView;
use crate::pending_frees::{Pending, PendingFrees};
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::stream_order::Order;
use crate::try_reserve::TryGrow;

/// `cuMemAllocAsync` and `cuMemFreeAsync`.
///
/// A block is freed in the order of its stream; uses on other streams are ordered before that with device-side
/// waits. If its stream is gone it is pending until all its uses are done, and then freed in the order of a stream of the pool:
/// by the next allocation, or on [`ReclaimStep::Completed`]. What the driver keeps is given back on [`ReclaimStep::IdlePages`]; how much that is
/// the driver alone knows, so what counts as reserved is what is live or pending.
pub struct DriverPool {
    key: ResourceKey,
    driver: Arc<dyn Driver>,
    order: Arc<dyn Order>,
    /// The stream each block was allocated on.
    streams: Mutex<HashMap<MemoryId, StreamRef>>,
    /// Blocks whose stream is gone.
    pending: PendingFrees,
    /// Where those are freed.
    late: OnceLock<StreamId>,
    live_bytes: AtomicU64,
    live_blocks: AtomicU64,
    peak_bytes: AtomicU64,
    waits: AtomicU64,
    activity: Mutex<PoolActivity>,
}

/// What a driver's pool did, as far as is known outside of the driver: it grows where more is in use than it is known to hold, and where
/// trimming frees more of the device than that. What it took, less what it gave back, is what it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolActivity {
    /// Bytes that it took from the device, altogether.
    pub grown_bytes: u64,
    /// Those of them that were only seen when it was trimmed: blocks that were freed while their streams still used them, and what the driver
    /// rounds up.
    pub unseen_bytes: u64,
    /// Times it was asked to give back what it keeps.
    pub trims: u64,
    /// Bytes that the device had free thereby.
    pub trimmed_bytes: u64,
}

impl PoolActivity {
    /// Bytes that it has of the device.
    pub fn held_bytes(&self) -> u64 {
        self.grown_bytes.saturating_sub(self.trimmed_bytes)
    }

    /// So many bytes are in use.
    fn used(&mut self, live_bytes: u64) {
        self.grown_bytes += live_bytes.saturating_sub(self.held_bytes());
    }

    /// It gave bytes back, and so many are still in use.
    fn trimmed(&mut self, released_bytes: u64, live_bytes: u64) {
        let held_bytes = live_bytes.saturating_add(released_bytes);
        let unseen_bytes = held_bytes.saturating_sub(self.held_bytes());
        self.grown_bytes += unseen_bytes;
        self.unseen_bytes += unseen_bytes;
        self.trimmed_bytes += released_bytes;
        self.trims += 1;
    }
}

impl DriverPool {
    /// The pool of a driver.
    ///
    /// # Errors
    /// Unsupported where the device has none.
    pub fn new(driver: Arc<dyn Driver>, order: Arc<dyn Order>) -> Result<Self> {
        if !driver.info().features.memory_pool {
            let what = format!("{} has no memory pool", driver.info().name);
            return Err(
                ErrorKind::from(MemoryRefusal::Unsupported { what, next: "use `heap` or `direct`" }).into()
            );
        }
        Ok(Self {
            key: ResourceKey::fresh(),
            driver,
            order,
            streams: Mutex::default(),
            pending: PendingFrees::default(),
            late: OnceLock::new(),
            live_bytes: AtomicU64::new(0),
            live_blocks: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            activity: Mutex::default(),
        })
    }

    /// What it did since it was made. Unlike [`accounting`](MemoryResource::accounting) it does not look at what is pending.
    pub fn activity(&self) -> PoolActivity {
        *self.locked_activity()
    }

    fn locked_activity(&self) -> MutexGuard<'_, PoolActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back to the device what the driver keeps; the bytes that it has free thereby.
    fn trim(&self) -> Result<u64> {
        let before = self.driver.memory_info()?.free_bytes;
        self.driver.trim_pool(0)?;
        let released = self.driver.memory_info()?.free_bytes.saturating_sub(before);
        self.locked_activity().trimmed(released, self.live_bytes.load(Ordering::Relaxed));
        Ok(released)
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<MemoryId, StreamRef>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a new block down. If the host has no memory for that, the block, which was never used, is freed.
    fn enter(&self, memory: MemoryId, stream: StreamRef) -> Result<()> {
        let mut streams = self.streams();
        if let Err(error) = streams.try_grow(1) {
            drop(streams);
            let _ = self.driver.free(memory, Some(stream.id()));
            return Err(error.into());
        }
        streams.insert(memory, stream);
        Ok(())
    }

    /// Frees a block in the order of its stream; false if that stream takes nothing any more.
    fn free_on(&self, memory: MemoryId, stream: StreamRef, uses: &Stamps) -> Result<bool> {
        for stamp in uses.iter() {
            if !self.order.is_ordered(stream.key(), stamp) {
                match self.order.wait_on(stream.key(), stamp) {
                    Ok(()) => drop(self.waits.fetch_add(1, Ordering::Relaxed)),
                    // A stream that takes no wait is gone, or being given back; a lost device takes nothing.
                    Err(error) if !error.is_sticky() => return Ok(false),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        match self.driver.free(memory, Some(stream.id())) {
            // The memory is there, so it is the stream that is not.
            Err(error) if matches!(error.refusal(), Some(kiln_driver::Refusal::Stale { .. })) => Ok(false),
            freed => Ok(freed.map(|()| true)?),
        }
    }

    /// Frees a block that nothing uses any more and whose stream is gone.
    fn free_late(&self, memory: MemoryId) -> Result<()> {
        Ok(self.driver.free(memory, Some(self.late_stream()?))?)
    }

    /// Frees what is pending and done; returns the bytes.
    fn free_done(&self) -> Result<u64> {
        self.pending.free_done(&*self.order, |memory, _| self.free_late(memory))
    }

    fn late_stream(&self) -> Result<StreamId> {
        if let Some(stream) = self.late.get() {
            return Ok(*stream);
        }
        let new = self.driver.create_stream(StreamRequest::New { priority: 0 })?;
        let stream = *self.late.get_or_init(|| new);
        if stream != new {
            // Another thread was faster, and nothing was submitted to this one.
            self.driver.destroy(Object::Stream(new))?;
        }
        Ok(stream)
    }
}

#[deny(clippy::missing_trait_methods)]
impl MemoryResource for DriverPool {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let (align, most) = (request.align, self.driver.info().limits.allocation_alignment_bytes.max(1));
        if !align.is_power_of_two() || align > most {
            return Err(ErrorKind::from(MemoryRefusal::Alignment { align, most }).into());
        }
        let mut block = DeviceBlock::vacant(self.key, request)?;
        let AllocationRequest { bytes, stream, .. } = *request;
        if bytes > 0 {
            // What is pending is not kept until memory is short: the driver's pool is shared. One look at a time, so that no caller
            // pays for the frees of all others.
            self.pending.refresh_oldest(&*self.order)?;
            self.free_done()?;
            let ask = || self.driver.allocate(MemoryRequest::Pool { bytes, stream: stream.id() });
            let memory =
                obtain(self, bytes, ReclaimStep::IdlePages, || self.pending.until(&*self.order), ask)?;
            self.enter(memory.id, stream)?;
            block = block.placed(Place::Device(memory.id.into()), memory.address, BlockToken::default());
        }
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        self.live_blocks.fetch_add(1, Ordering::Relaxed);
        self.locked_activity().used(live);
        Ok(block)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        if let Some(Base::Memory(memory)) = block.device_place().map(|place| place.base) {
            // Removed first, so that no other thread frees it meanwhile.
            let Some(stream) = self.streams().remove(&memory) else { return Err(FreeError::stale(block)) };
            match self.free_on(memory, stream, uses) {
                Ok(true) => {}
                Ok(false) => {
                    self.pending.push(Pending::new(memory, block.bytes(), stream.key(), uses, &*self.order));
                }
                Err(error) => {
                    self.streams().insert(memory, stream);
                    return Err(FreeError { block, error });
                }
            }
        }
        self.live_bytes.fetch_sub(block.bytes(), Ordering::Relaxed);
        self.live_blocks.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        let (live_bytes, pending_bytes) = (self.live_bytes.load(Ordering::Relaxed), self.pending.bytes());
        let peak = self.peak_bytes.load(Ordering::Relaxed);
        Accounting {
            live_bytes,
            live_blocks: self.live_blocks.load(Ordering::Relaxed),
            peak_live_bytes: peak,
            pending_bytes,
            reserved_bytes: live_bytes + pending_bytes,
            peak_reserved_bytes: peak.max(live_bytes + pending_bytes),
            false_dependencies: self.waits.load(Ordering::Relaxed),
            ..Accounting::default()
        }
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        match step {
            ReclaimStep::Completed => {
                self.pending.refresh(&*self.order)?;
                Ok(Reclaimed::freed(self.free_done()?))
            }
            ReclaimStep::IdlePages => {
                // What is pending and done is the driver's to keep or to give back as well.
                let freed = self.reclaim(ReclaimStep::Completed)?;
                Ok(freed + Reclaimed::released(self.trim()?))
            }
            _ => Ok(Reclaimed::default()),
        }
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::base().showing(self)
    }
}

impl Drop for DriverPool {
    /// Waits for what is pending and frees it, and frees what is still live where the work of its stream is done; otherwise it is left to
    /// the device, because it is not known what uses it.
    fn drop(&mut self) {
        self.pending.free_all(&*self.order, |memory, _| self.free_late(memory));
        let live = std::mem::take(&mut *self.streams());
        for (memory, _) in live.into_iter().filter(|(_, stream)| self.order.is_idle(stream.key())) {
            let _ = self.free_late(memory);
        }
        if let Some(stream) = self.late.take() {
            // If it cannot be destroyed, the device is lost.
            let _ = self.driver.destroy(Object::Stream(stream));
        }
    }
}

impl fmt::Display for DriverPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pool")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pool_took_less_what_it_gave_back_is_what_it_holds() {
        let mut pool = PoolActivity::default();
        pool.used(100);
        pool.used(40);
        assert_eq!(pool.held_bytes(), 100, "the most that was in use at once");
        // The device has all of it again, and more than was known.
        pool.trimmed(180, 20);
        assert_eq!((pool.grown_bytes, pool.unseen_bytes, pool.held_bytes()), (200, 100, 20));
        // Work still uses what was freed, so that nothing is given back.
        pool.used(70);
        pool.trimmed(0, 0);
        assert_eq!((pool.grown_bytes, pool.held_bytes()), (250, 70), "it keeps that");
        pool.used(70);
        assert_eq!((pool.grown_bytes, pool.trims, pool.trimmed_bytes), (250, 2, 180));
    }
}
