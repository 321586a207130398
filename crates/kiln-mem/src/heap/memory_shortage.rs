//! What a heap does when memory is short, step by step, and the error if nothing helped.

use std::sync::atomic::Ordering;

use kiln_driver::Timeout;

use super::backing::GrowError;
use super::locked_arena::LockedArena;
use super::size_class::UNIT_BYTES;
use super::slow_path::UnitRequest;
use super::thread_cache::StreamCache;
use super::{BlockUnits, Heap, ThreadPart};
use crate::allocation_counters;
use crate::error::{Error, ErrorKind, Result};
use crate::last_use::Stamp;
use crate::out_of_memory::Exhausted;
use crate::reclaim::{ReclaimAttempt, ReclaimStep, Reclaimed};
use crate::resource_totals::Accounting;

/// Tags named in an error.
const TOP_TAGS: usize = 5;

impl Heap {
    /// Takes the steps of the policy, cheapest first, until the request is met.
    #[cold]
    pub(super) fn reclaim_for(
        &self,
        part: &ThreadPart,
        cell: &LockedArena,
        wanted: UnitRequest,
        refused: GrowError,
    ) -> Result<BlockUnits> {
        let mut refused = match refused {
            GrowError::Driver(error) if !error.is_oom() => return Err(error.into()),
            GrowError::Host(error) => return Err(error.into()),
            refused => refused,
        };
        self.activity.shortages.note();
        let mut attempts = Vec::new();
        for step in self.pressure.steps.iter().copied() {
            if step == ReclaimStep::Ordered
                && let Some(block_units) = self.borrow_after_wait(cell, wanted)?
            {
                return Ok(block_units);
            }
            let reclaimed = self.take_step(step, u64::from(wanted.units) * UNIT_BYTES)?;
            attempts.push(ReclaimAttempt { step, reclaimed });
            if let Some(block_units) = self.take_own(part, cell, wanted) {
                return Ok(block_units);
            }
            if let Some(block_units) = self.borrow(cell, wanted) {
                return Ok(block_units);
            }
            self.import_all_frames(cell, wanted);
            if let Some(block_units) = self.remap(cell, wanted)? {
                return Ok(block_units);
            }
            // Callbacks may have freed more than they say, or something else.
            if !reclaimed.is_nothing() || step == ReclaimStep::Callbacks {
                if step > ReclaimStep::IdlePages && self.pressure.steps.contains(&ReclaimStep::IdlePages) {
                    // What was freed is not contiguous; given back to the device, its pages can be used for this request.
                    self.release_idle()?;
                }
                match self.grow(part, cell, wanted) {
                    Ok(block_units) => return Ok(block_units),
                    Err(GrowError::Driver(error)) if !error.is_oom() => return Err(error.into()),
                    Err(GrowError::Host(error)) => return Err(error.into()),
                    Err(error) => refused = error,
                }
            }
        }
        Err(self.explain(wanted, refused, attempts))
    }

    /// Takes one step.
    pub(super) fn take_step(&self, step: ReclaimStep, missing_bytes: u64) -> Result<Reclaimed> {
        match step {
            ReclaimStep::ThreadCaches => Ok(Reclaimed::freed(self.empty_all_caches(|_| true) * UNIT_BYTES)),
            ReclaimStep::Completed => self.settle_all(),
            // Without a request there is nothing to wait for; with one, `borrow_after_wait` does it.
            ReclaimStep::Ordered => Ok(Reclaimed::default()),
            ReclaimStep::IdlePages => self.release_idle(),
            ReclaimStep::Callbacks if missing_bytes > 0 => {
                Ok(Reclaimed::freed(self.pressure.call_back(missing_bytes)) + self.settle_all()?)
            }
            ReclaimStep::Wait if missing_bytes > 0 => self.wait_for_pending(missing_bytes),
            ReclaimStep::Callbacks | ReclaimStep::Wait => Ok(Reclaimed::default()),
        }
    }

    /// Gives the caches of all threads back to their arenas; returns the units.
    pub(super) fn empty_all_caches(&self, which: impl Fn(&StreamCache) -> bool) -> u64 {
        let mut units = 0;
        for part in self.parts.iter() {
            loop {
                let mut cache = part.cache.visit();
                let filled = cache.streams().iter_mut().find(|cache| cache.count() > 0 && which(cache));
                let next = filled.map(|cache| {
                    let before = cache.units();
                    let batch = cache.drain();
                    (cache.arena, batch, before - cache.units())
                });
                drop(cache);
                let Some((arena, batch, drained)) = next else { break };
                self.give_batch(arena, batch);
                units += drained;
            }
        }
        units
    }

    /// What the heap holds.
    pub(super) fn count(&self) -> Accounting {
        let total = allocation_counters::total(self.thread_counters());
        let live_bytes = total.live_bytes();
        let mut counted = Accounting {
            live_bytes,
            live_blocks: total.live_blocks(),
            peak_live_bytes: self.counters.peak_bytes(self.thread_counters()).max(live_bytes),
            reserved_bytes: self.backing.reserved_bytes(),
            peak_reserved_bytes: self.backing.peak_bytes(),
            false_dependencies: self.false_dependencies.load(Ordering::Relaxed),
            ..Accounting::default()
        };
        for part in self.parts.iter() {
            let cached: u64 = part.cache.visit().streams().iter().map(StreamCache::units).sum();
            counted.cached_bytes += cached * UNIT_BYTES;
        }
        for cell in self.arenas.iter() {
            let state = cell.visit();
            counted.pending_bytes += state.pending_units() * UNIT_BYTES;
            let largest = u64::from(state.arena.largest_free_units()) * UNIT_BYTES;
            counted.largest_free_bytes = counted.largest_free_bytes.max(largest);
        }
        counted
    }

    /// Asks how far all streams are, then frees what is not used any more.
    fn settle_all(&self) -> Result<Reclaimed> {
        self.refresh()?;
        let settled =
            self.arenas.iter().map(|cell| cell.visit().settle(cell.stream(), &*self.order, usize::MAX));
        Ok(Reclaimed::freed(settled.sum::<u64>() * UNIT_BYTES))
    }

    /// Asks how far all streams are.
    pub(super) fn refresh(&self) -> Result<()> {
        for cell in self.arenas.iter() {
            self.order.refresh(cell.stream())?;
        }
        Ok(())
    }

    /// Waits, for as long as the program allows, for the uses that pending blocks wait for, the longest pending first, until enough is free.
    /// If all that is free, pending or not yet taken from the device is not enough, it does not wait.
    fn wait_for_pending(&self, missing_bytes: u64) -> Result<Reclaimed> {
        let counted = self.count();
        let mut reclaimed = Reclaimed::default();
        let held = counted.free_bytes() + counted.pending_bytes;
        if held.saturating_add(self.backing.room_bytes()?) < missing_bytes {
            return Ok(reclaimed);
        }
        let clock = self.backing.driver().clock();
        let end = clock.now().saturating_add(self.pressure.wait);
        let mut waited_for = None;
        while reclaimed.freed_bytes < missing_bytes {
            let left = end.saturating_sub(clock.now());
            let Some(stamp) = self.pending_until().filter(|stamp| Some(*stamp) != waited_for) else { break };
            if left.is_zero() || !self.order.wait(stamp, Timeout::After(left))?.is_done() {
                break;
            }
            waited_for = Some(stamp);
            reclaimed = reclaimed + self.settle_all()?;
        }
        Ok(reclaimed)
    }

    fn pending_until(&self) -> Option<Stamp> {
        self.arenas.iter().find_map(|cell| cell.visit().pending_until())
    }

    fn explain(&self, wanted: UnitRequest, refused: GrowError, attempts: Vec<ReclaimAttempt>) -> Error {
        let counted = self.count();
        let mut exhausted = Exhausted {
            rounded_bytes: u64::from(wanted.units) * UNIT_BYTES,
            in_use_bytes: counted.live_bytes,
            reserved_bytes: counted.reserved_bytes,
            free_bytes: counted.free_bytes(),
            largest_free_bytes: counted.largest_free_bytes,
            pending_bytes: counted.pending_bytes,
            pending_until: self.pending_until(),
            top_tags: allocation_counters::top_tags(self.thread_counters(), TOP_TAGS),
            attempts,
            ..Exhausted::new(self.to_string(), wanted.bytes)
        };
        refused.write_into(&mut exhausted);
        ErrorKind::from(exhausted).into()
    }
}
