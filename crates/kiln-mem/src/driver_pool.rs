//! Memory from the driver's own pool, in the order of streams.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kiln_driver::{
    Base, DeviceAddress, Driver, MemoryId, MemoryRequest, Object, Place, StreamId, StreamRequest, Timeout,
};

use crate::accounting::Accounting;
use crate::block::{BlockParts, DeviceBlock, ResourceKey, Token};
use crate::driver_memory::obtain;
use crate::error::{ErrorKind, FreeError, Refusal, Result};
use crate::ladder::{Relief, Rung};
use crate::order::Order;
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::{Stamp, Stamps, StreamKey};

/// `cuMemAllocAsync` and `cuMemFreeAsync`.
///
/// A block is freed in the order of its own stream; uses on other streams are ordered before that with device-side
/// waits. If its stream is gone, and its work with it, it is freed in the order of a stream of the pool's own. What the pool keeps is given back on [`Rung::IdlePages`].
pub struct DriverPool {
    key: ResourceKey,
    driver: Arc<dyn Driver>,
    order: Arc<dyn Order>,
    /// The stream each block was allocated on.
    streams: Mutex<HashMap<MemoryId, StreamId>>,
    /// Where blocks are freed whose stream is gone.
    late: OnceLock<StreamId>,
    live_bytes: AtomicU64,
    live_blocks: AtomicU64,
    peak_bytes: AtomicU64,
    waits: AtomicU64,
}

impl DriverPool {
    /// The pool of a driver.
    ///
    /// # Errors
    /// Unsupported where the device has none.
    pub fn new(driver: Arc<dyn Driver>, order: Arc<dyn Order>) -> Result<Self> {
        if !driver.info().features.memory_pool {
            let what = format!("{} has no memory pool", driver.info().name);
            return Err(ErrorKind::from(Refusal::Unsupported { what, next: "use `heap` or `direct`" }).into());
        }
        Ok(Self {
            key: ResourceKey::fresh(),
            driver,
            order,
            streams: Mutex::default(),
            late: OnceLock::new(),
            live_bytes: AtomicU64::new(0),
            live_blocks: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        })
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<MemoryId, StreamId>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self, memory: MemoryId, stream: StreamId, key: StreamKey, uses: &Stamps) -> Result<()> {
        for stamp in uses.as_slice() {
            if !self.order.is_ordered(key, *stamp) {
                match self.order.wait_on(key, *stamp) {
                    Ok(()) => drop(self.waits.fetch_add(1, Ordering::Relaxed)),
                    // A stream that takes no wait is gone, or being given back; a lost device takes nothing.
                    Err(error) if !error.is_sticky() => return self.free_late(memory, key, uses),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        match self.driver.free(memory, Some(stream)) {
            // The memory is there, so it is the stream that is not.
            Err(error) if matches!(error.refusal(), Some(kiln_driver::Refusal::Stale { .. })) => {
                self.free_late(memory, key, uses)
            }
            freed => Ok(freed?),
        }
    }

    /// Frees memory whose stream is gone, once everything is done that may use it; on its own stream that is everything.
    fn free_late(&self, memory: MemoryId, key: StreamKey, uses: &Stamps) -> Result<()> {
        let own = Stamp { stream: key, number: self.order.latest(key) };
        for stamp in uses.as_slice().iter().chain([&own]) {
            let _ = self.order.wait(*stamp, Timeout::Never)?;
        }
        Ok(self.driver.free(memory, Some(self.late_stream()?))?)
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

    fn allocate(&self, request: &Request) -> Result<DeviceBlock> {
        let (align, most) = (request.align, self.driver.info().limits.allocation_alignment_bytes.max(1));
        if !align.is_power_of_two() || align > most {
            return Err(ErrorKind::from(Refusal::Alignment { align, most }).into());
        }
        let Request { bytes, stream, tag, .. } = *request;
        let (place, address) = if bytes == 0 {
            (None, DeviceAddress(0))
        } else {
            let ask = || self.driver.allocate(MemoryRequest::Pool { bytes, stream: stream.id });
            let memory = obtain(self, bytes, Rung::IdlePages, || None, ask)?;
            self.streams().insert(memory.id, stream.id);
            (Some(Place::Device(memory.id.into())), memory.address)
        };
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        self.live_blocks.fetch_add(1, Ordering::Relaxed);
        let parts = BlockParts { place, address, bytes, stream: stream.key, tag, token: Token::default() };
        Ok(DeviceBlock::new(self.key, parts))
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        if let Some(Base::Memory(memory)) = block.device_place().map(|place| place.base) {
            // Taken out first, so that nobody else frees it meanwhile.
            let Some(stream) = self.streams().remove(&memory) else { return Err(FreeError::stale(block)) };
            if let Err(error) = self.free(memory, stream, block.stream(), uses) {
                self.streams().insert(memory, stream);
                return Err(FreeError { block, error });
            }
        }
        self.live_bytes.fetch_sub(block.bytes(), Ordering::Relaxed);
        self.live_blocks.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        let live_bytes = self.live_bytes.load(Ordering::Relaxed);
        Accounting {
            live_bytes,
            live_blocks: self.live_blocks.load(Ordering::Relaxed),
            peak_live_bytes: self.peak_bytes.load(Ordering::Relaxed),
            reserved_bytes: live_bytes,
            peak_reserved_bytes: self.peak_bytes.load(Ordering::Relaxed),
            false_dependencies: self.waits.load(Ordering::Relaxed),
            ..Accounting::default()
        }
    }

    fn reap(&self, rung: Rung) -> Result<Relief> {
        if rung != Rung::IdlePages {
            return Ok(Relief::default());
        }
        let before = self.driver.memory_info()?.free_bytes;
        self.driver.trim_pool(0)?;
        let after = self.driver.memory_info()?.free_bytes;
        Ok(Relief::released(after.saturating_sub(before)))
    }
}

impl Drop for DriverPool {
    fn drop(&mut self) {
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
