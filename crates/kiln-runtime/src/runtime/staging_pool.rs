//! Pinned host memory for transfers, pooled.
//!
//! Pinning a block costs more than a millisecond, so blocks are kept: one list per power of two. A block comes back with the stamp
//! of the copy that uses it and is given out again once that is done. Blocks are kept up to a limit; one that comes back past it is freed
//! once its copy is done.

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
    /// Blocks past the limit whose copies were not done when they came back.
    leaving: Mutex<Vec<Idle>>,
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

impl Idle {
    /// Whether a copy may still use it. A device that is lost uses nothing any more.
    fn is_used(&self, tracker: &DependencyTracker) -> bool {
        matches!(tracker.all_done(&self.after), Ok(false))
    }
}

impl Staging {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            classes: [const { Mutex::new(Class { idle: Vec::new(), reused: 0 }) }; _],
            idle_bytes: [const { AtomicU64::new(0) }; _],
            leaving: Mutex::default(),
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
        self.free_leaving(tracker);
        let block = tracker.driver().allocate_host(if shift > MAX_SHIFT { bytes } else { 1 << shift })?;
        self.blocks().insert(block.id());
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(block)
    }

    /// Takes a block back; it may be given out again after its last uses. Two threads that do so at once may pass the limit by a block.
    pub(crate) fn put_back(&self, block: HostBlock, after: Stamps, tracker: &DependencyTracker) {
        let bytes = block.len() as u64;
        let shift = bytes.trailing_zeros();
        let kept = bytes.is_power_of_two() && (MIN_SHIFT..=MAX_SHIFT).contains(&shift);
        if kept && self.idle_bytes() + bytes <= self.limit_bytes {
            return self.add(shift, Idle { block, after });
        }
        self.leaving().push(Idle { block, after });
        self.free_leaving(tracker);
    }

    /// Gives every block back to the driver, also those that are held; for the end of a runtime.
    pub(crate) fn destroy_all(&self, driver: &dyn Driver) {
        for block in std::mem::take(&mut *self.blocks()) {
            let _ = driver.destroy(block.into());
        }
    }

    /// Gives every block that no copy uses back to the driver. Says how many bytes.
    pub(crate) fn release_all(&self, tracker: &DependencyTracker) -> u64 {
        let mut released_bytes = self.free_leaving(tracker);
        for shift in MIN_SHIFT..=MAX_SHIFT {
            let mut class = self.class(shift);
            let released = std::mem::take(&mut class.idle);
            self.publish(shift, &class);
            drop(class);
            for idle in released {
                match idle.is_used(tracker) {
                    true => self.add(shift, idle),
                    false => released_bytes += self.destroy(&idle, tracker),
                }
            }
        }
        released_bytes
    }

    /// Frees the blocks past the limit whose copies are done. Says how many bytes.
    fn free_leaving(&self, tracker: &DependencyTracker) -> u64 {
        if self.leaving().is_empty() {
            return 0;
        }
        // The driver is asked outside of the lock, and only a few times about blocks that are still used.
        let leaving = std::mem::take(&mut *self.leaving());
        let mut questions = LOOK_AT;
        let (used, done): (Vec<_>, Vec<_>) = leaving.into_iter().partition(|idle| {
            let is_known = idle.after.iter().all(|stamp| tracker.host().covers(stamp));
            let is_used = !is_known && (questions == 0 || idle.is_used(tracker));
            questions -= usize::from(is_used && questions > 0);
            is_used
        });
        self.leaving().extend(used);
        done.iter().map(|idle| self.destroy(idle, tracker)).sum()
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

    /// Gives a block back to the driver. Says how many bytes.
    fn destroy(&self, idle: &Idle, tracker: &DependencyTracker) -> u64 {
        let block = idle.block.id();
        self.blocks().remove(&block);
        let _ = tracker.driver().destroy(block.into());
        idle.block.len() as u64
    }

    fn leaving(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
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
