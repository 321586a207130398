//! What a heap does when memory is short, step by step, and what it says when nothing helped.

use std::sync::atomic::Ordering;

use kiln_driver::Timeout;

use super::allocate::Ask;
use super::arena_cell::ArenaCell;
use super::front::Stock;
use super::ground::GrowError;
use super::size_class::UNIT_BYTES;
use super::{Heap, Shard, Ticket};
use crate::accounting::Accounting;
use crate::error::{Error, ErrorKind, Result};
use crate::exhausted::Exhausted;
use crate::ladder::{Relief, Rung, Step};
use crate::ledger;
use crate::stamp::Stamp;

/// Tags named in an error.
const TOP_TAGS: usize = 5;

impl Heap {
    /// Goes down the ladder until the request is met.
    #[cold]
    pub(super) fn climb(
        &self,
        shard: &Shard,
        cell: &ArenaCell,
        ask: Ask,
        refused: GrowError,
    ) -> Result<Ticket> {
        let mut refused = match refused {
            GrowError::Driver(error) if !error.is_oom() => return Err(error.into()),
            refused => refused,
        };
        self.happened.climbs.note();
        let mut steps = Vec::new();
        for rung in self.pressure.rungs.iter().copied() {
            if rung == Rung::Ordered
                && let Some(ticket) = self.lend_after_wait(cell, ask)?
            {
                return Ok(ticket);
            }
            let relief = self.relieve(rung, u64::from(ask.units) * UNIT_BYTES)?;
            steps.push(Step { rung, relief });
            if let Some(ticket) = self.take_own(shard, cell, ask) {
                return Ok(ticket);
            }
            if let Some(ticket) = self.lend(cell, ask) {
                return Ok(ticket);
            }
            self.import_all(cell, ask);
            if let Some(ticket) = self.fold(cell, ask)? {
                return Ok(ticket);
            }
            // Callbacks may have freed more than they say, or something else.
            if !relief.is_nothing() || rung == Rung::Callbacks {
                if rung > Rung::IdlePages && self.pressure.rungs.contains(&Rung::IdlePages) {
                    // What came free lies where the request does not fit; others may have room for its pages.
                    self.release_idle()?;
                }
                match self.grow(shard, cell, ask) {
                    Ok(ticket) => return Ok(ticket),
                    Err(GrowError::Driver(error)) if !error.is_oom() => return Err(error.into()),
                    Err(error) => refused = error,
                }
            }
        }
        Err(self.explain(ask, refused, steps))
    }

    /// Takes one step.
    pub(super) fn relieve(&self, rung: Rung, missing_bytes: u64) -> Result<Relief> {
        match rung {
            Rung::FrontCaches => Ok(Relief::freed(self.empty_all_stocks(|_| true) * UNIT_BYTES)),
            Rung::Completed => self.settle_all(),
            // Nobody waits for memory that nobody asked for; a request that does is served by `lend_after_wait`.
            Rung::Ordered => Ok(Relief::default()),
            Rung::IdlePages => self.release_idle(),
            Rung::Callbacks if missing_bytes > 0 => {
                Ok(Relief::freed(self.pressure.call_back(missing_bytes)) + self.settle_all()?)
            }
            Rung::Wait if missing_bytes > 0 => self.wait_for_pending(missing_bytes),
            Rung::Callbacks | Rung::Wait => Ok(Relief::default()),
        }
    }

    /// Gives the stocks of all threads back to their arenas; returns the units.
    pub(super) fn empty_all_stocks(&self, which: impl Fn(&Stock) -> bool) -> u64 {
        let mut units = 0;
        for shard in self.shards.iter() {
            loop {
                let mut front = shard.front.visit();
                let filled = front.stocks().iter_mut().find(|stock| stock.count() > 0 && which(stock));
                let next = filled.map(|stock| {
                    let before = stock.units();
                    let batch = stock.drain();
                    (stock.arena, batch, before - stock.units())
                });
                drop(front);
                let Some((arena, batch, drained)) = next else { break };
                self.give_batch(arena, &batch);
                units += drained;
            }
        }
        units
    }

    /// What the heap holds.
    pub(super) fn count(&self) -> Accounting {
        let total = ledger::total(self.pages());
        let live_bytes = total.live_bytes();
        let mut counted = Accounting {
            live_bytes,
            live_blocks: total.live_blocks(),
            peak_live_bytes: self.ledger.peak_bytes(self.pages()).max(live_bytes),
            reserved_bytes: self.ground.reserved_bytes(),
            peak_reserved_bytes: self.ground.peak_bytes(),
            false_dependencies: self.false_dependencies.load(Ordering::Relaxed),
            ..Accounting::default()
        };
        for shard in self.shards.iter() {
            let stocked: u64 = shard.front.visit().stocks().iter().map(Stock::units).sum();
            counted.cached_bytes += stocked * UNIT_BYTES;
        }
        for cell in self.arenas.iter() {
            let books = cell.visit();
            counted.pending_bytes += books.pending_units() * UNIT_BYTES;
            let largest = u64::from(books.arena.largest_free_units()) * UNIT_BYTES;
            counted.largest_free_bytes = counted.largest_free_bytes.max(largest);
        }
        counted
    }

    /// Asks how far all streams are, then frees what is not used any more.
    fn settle_all(&self) -> Result<Relief> {
        self.refresh()?;
        let settled =
            self.arenas.iter().map(|cell| cell.visit().settle(cell.stream(), &*self.order, usize::MAX));
        Ok(Relief::freed(settled.sum::<u64>() * UNIT_BYTES))
    }

    /// Asks how far all streams are.
    pub(super) fn refresh(&self) -> Result<()> {
        for cell in self.arenas.iter() {
            self.order.refresh(cell.stream())?;
        }
        Ok(())
    }

    /// Waits, for as long as the program allows, for the uses that pending blocks wait for, the longest pending first,
    /// until enough came free. If all that is free, pending and not taken yet is not enough, waiting would be in vain.
    fn wait_for_pending(&self, missing_bytes: u64) -> Result<Relief> {
        let counted = self.count();
        let mut relief = Relief::default();
        let held = counted.free_bytes() + counted.pending_bytes;
        if held.saturating_add(self.ground.room_bytes()?) < missing_bytes {
            return Ok(relief);
        }
        let clock = self.ground.driver().clock();
        let end = clock.now().saturating_add(self.pressure.wait);
        let mut waited_for = None;
        while relief.freed_bytes < missing_bytes {
            let left = end.saturating_sub(clock.now());
            let Some(stamp) = self.pending_until().filter(|stamp| Some(*stamp) != waited_for) else { break };
            if left.is_zero() || !self.order.wait(stamp, Timeout::After(left))?.is_done() {
                break;
            }
            waited_for = Some(stamp);
            relief = relief + self.settle_all()?;
        }
        Ok(relief)
    }

    fn pending_until(&self) -> Option<Stamp> {
        self.arenas.iter().find_map(|cell| cell.visit().pending_until())
    }

    fn explain(&self, ask: Ask, refused: GrowError, steps: Vec<Step>) -> Error {
        let counted = self.count();
        let mut exhausted = Exhausted {
            rounded_bytes: u64::from(ask.units) * UNIT_BYTES,
            in_use_bytes: counted.live_bytes,
            reserved_bytes: counted.reserved_bytes,
            free_bytes: counted.free_bytes(),
            largest_free_bytes: counted.largest_free_bytes,
            pending_bytes: counted.pending_bytes,
            pending_until: self.pending_until(),
            top_tags: ledger::top_tags(self.pages(), TOP_TAGS),
            steps,
            ..Exhausted::new(self.to_string(), ask.bytes)
        };
        refused.write_into(&mut exhausted);
        ErrorKind::from(exhausted).into()
    }
}
