//! Pinned host memory for transfers, pooled.
//!
//! Pinning a block costs more than a millisecond, so blocks are kept: one list per power of two. A block comes back with the stamp
//! of the copy that uses it and is given out again once that is done. Idle blocks are kept up to a limit; past it a block that comes back
//! is freed instead.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{Driver, Error, HostBlock, HostId};
use kiln_order::{DependencyTracker, Stamps};

/// The smallest block, as a power of two.
const MIN_SHIFT: u32 = 12;
/// The largest block that is kept, as a power of two.
const MAX_SHIFT: u32 = 30;
/// Blocks of one size that are looked at before a new one is made.
const LOOK_AT: usize = 4;

/// Sizes that are kept.
const CLASSES: usize = (MAX_SHIFT - MIN_SHIFT + 1) as usize;

/// The staging blocks of one device.
pub(crate) struct Staging {
    classes: [Mutex<Class>; CLASSES],
    /// Idle bytes of each class, written by who holds its lock and read by all: a sum of them costs less than one number that all change.
    idle_bytes: [AtomicU64; CLASSES],
    /// Every block there is, idle or not: who holds one may outlive the runtime. Changes only when the driver is called anyway.
    blocks: Mutex<HashSet<HostId>>,
    limit_bytes: u64,
    /// Blocks that were made.
    made: AtomicU64,
}

/// The blocks of one size.
struct Class {
    idle: Vec<Idle>,
    /// Blocks given out that were idle.
    reused: u64,
}

struct Idle {
    block: HostBlock,
    after: Stamps,
}

impl Staging {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            classes: [const { Mutex::new(Class { idle: Vec::new(), reused: 0 }) }; _],
            idle_bytes: [const { AtomicU64::new(0) }; _],
            blocks: Mutex::default(),
            limit_bytes,
            made: AtomicU64::new(0),
        }
    }

    /// Blocks given out that had been used before.
    pub(crate) fn reused(&self) -> u64 {
        (MIN_SHIFT..=MAX_SHIFT).map(|shift| self.class(shift).reused).sum()
    }

    /// Blocks that had to be made.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Bytes that wait to be used again.
    pub(crate) fn idle_bytes(&self) -> u64 {
        self.idle_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// A block of at least so many bytes that no copy uses any more.
    pub(crate) fn take(&self, bytes: u64, tracker: &DependencyTracker) -> Result<HostBlock, Error> {
        let shift = bytes.max(1).next_power_of_two().trailing_zeros().max(MIN_SHIFT);
        if shift <= MAX_SHIFT
            && let Some(block) = self.reuse(shift, tracker)?
        {
            return Ok(block);
        }
        let block = tracker.driver().allocate_host(if shift > MAX_SHIFT { bytes } else { 1 << shift })?;
        self.blocks().insert(block.id());
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(block)
    }

    /// Takes a block back; it may be given out again after its last uses. Two threads that do so at once may pass the limit by a block.
    pub(crate) fn put_back(&self, block: HostBlock, after: Stamps, driver: &dyn Driver) {
        let bytes = block.len() as u64;
        let shift = bytes.trailing_zeros();
        let kept = bytes.is_power_of_two() && (MIN_SHIFT..=MAX_SHIFT).contains(&shift);
        if kept && self.idle_bytes() + bytes <= self.limit_bytes {
            self.add(shift, Idle { block, after });
        } else {
            self.destroy(block.id(), driver);
        }
    }

    /// Gives every block back to the driver, also those that are held; for the end of a runtime.
    pub(crate) fn destroy_all(&self, driver: &dyn Driver) {
        for block in std::mem::take(&mut *self.blocks()) {
            let _ = driver.destroy(block.into());
        }
    }

    /// Gives everything that is idle back to the driver, which keeps it until copies that use it are done. Says how many bytes.
    pub(crate) fn release_all(&self, driver: &dyn Driver) -> u64 {
        let mut released_bytes = 0;
        for shift in MIN_SHIFT..=MAX_SHIFT {
            let mut class = self.class(shift);
            let released = std::mem::take(&mut class.idle);
            self.publish(shift, &class);
            drop(class);
            for idle in released {
                released_bytes += idle.block.len() as u64;
                self.destroy(idle.block.id(), driver);
            }
        }
        released_bytes
    }

    /// An idle block whose copy is done. What is known to be done costs no driver call; else a few are asked about, outside of the
    /// lock.
    fn reuse(&self, shift: u32, tracker: &DependencyTracker) -> Result<Option<HostBlock>, Error> {
        for _ in 0..LOOK_AT {
            let idle = {
                let mut class = self.class(shift);
                let at = class
                    .idle
                    .iter()
                    .rposition(|idle| idle.after.iter().all(|stamp| tracker.host().covers(stamp)));
                if class.idle.is_empty() {
                    return Ok(None);
                }
                let idle = class.idle.swap_remove(at.unwrap_or(0));
                class.reused += u64::from(at.is_some());
                self.publish(shift, &class);
                if at.is_some() {
                    return Ok(Some(idle.block));
                }
                idle
            };
            let done = tracker.all_done(&idle.after);
            if matches!(done, Ok(true)) {
                self.class(shift).reused += 1;
                return Ok(Some(idle.block));
            }
            self.add(shift, idle);
            done?;
        }
        Ok(None)
    }

    /// Adds a block that is idle, or will be.
    fn add(&self, shift: u32, idle: Idle) {
        let mut class = self.class(shift);
        class.idle.push(idle);
        self.publish(shift, &class);
    }

    /// Says how much of a class is idle; its lock is held.
    fn publish(&self, shift: u32, class: &Class) {
        self.idle_bytes[index_of(shift)].store((class.idle.len() as u64) << shift, Ordering::Relaxed);
    }

    /// The driver keeps the memory until copies that use it are done.
    fn destroy(&self, block: HostId, driver: &dyn Driver) {
        self.blocks().remove(&block);
        let _ = driver.destroy(block.into());
    }

    fn blocks(&self) -> MutexGuard<'_, HashSet<HostId>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn class(&self, shift: u32) -> MutexGuard<'_, Class> {
        self.classes[index_of(shift)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index_of(shift: u32) -> usize {
    (shift.clamp(MIN_SHIFT, MAX_SHIFT) - MIN_SHIFT) as usize
}
