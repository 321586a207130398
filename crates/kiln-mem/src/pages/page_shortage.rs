//! Reclaims pages when memory is short, step by step, and makes the error if that does not help.

use kiln_driver::{Object, Timeout};

use super::Pages;
use crate::error::{Error, ErrorKind, Result};
use crate::heap::{GrowError, PAGE_BYTES, PageRun};
use crate::last_use::{Stamp, StreamKey};
use crate::out_of_memory::Exhausted;
use crate::reclaim::{ReclaimAttempt, ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;

/// Tags named in an error.
const TOP_TAGS: usize = 5;

impl Pages {
    /// Unmaps what holds nothing; returns the bytes.
    fn release_idle(&self) -> Result<u64> {
        let mut released = 0;
        loop {
            let Some((run, handle)) = self.state().map.take_idle() else { return Ok(released) };
            let unmapped = self.driver.unmap(self.window.id, run.offset(), run.bytes());
            let mut state = self.state();
            state.map.give(run);
            if let Err(error) = unmapped {
                state.map.enter(run, handle);
                return Err(error.into());
            }
            state.counted.reserved_bytes -= run.bytes();
            drop(state);
            self.refund(run.bytes());
            self.driver.destroy(Object::Pages(handle))?;
            released += run.bytes();
        }
    }

    /// Asks how far the streams are that pending blocks wait for, and takes what is done.
    fn settle_all(&self) -> Result<u64> {
        let streams: Vec<StreamKey> = {
            let state = self.state();
            let stamps = state.pending.iter().flat_map(|pending| pending.uses.iter().chain([pending.own]));
            stamps.map(|stamp| stamp.stream).collect()
        };
        for stream in streams {
            self.order.refresh(stream)?;
        }
        Ok(self.settle(&mut self.state()))
    }

    /// Takes one step; `missing_bytes` is 0 if there is no request.
    pub(super) fn take_step(&self, step: ReclaimStep, missing_bytes: u64) -> Result<Reclaimed> {
        match step {
            ReclaimStep::Completed => Ok(Reclaimed::freed(self.settle_all()?)),
            ReclaimStep::IdlePages => Ok(Reclaimed::released(self.release_idle()?)),
            ReclaimStep::Callbacks if missing_bytes > 0 => {
                let called = self.config.pressure.call_back(missing_bytes);
                Ok(Reclaimed::freed(called.max(self.settle_all()?)))
            }
            ReclaimStep::Wait if missing_bytes > 0 => self.wait_for_pending(missing_bytes),
            // Nothing is cached, and nothing is handed on before its work is done.
            ReclaimStep::ThreadCaches | ReclaimStep::Ordered | ReclaimStep::Callbacks | ReclaimStep::Wait => {
                Ok(Reclaimed::default())
            }
        }
    }

    /// Waits, for as long as the program allows, for what pending blocks wait for, the longest pending first, until enough
    /// came free. If all that is free, pending and not taken yet is not enough, waiting would be in vain.
    fn wait_for_pending(&self, missing_bytes: u64) -> Result<Reclaimed> {
        let counted = self.accounting();
        let held = counted.free_bytes() + counted.pending_bytes;
        let mut reclaimed = Reclaimed::default();
        if held.saturating_add(self.room_bytes()?) < missing_bytes {
            return Ok(reclaimed);
        }
        let clock = self.driver.clock();
        let end = clock.now().saturating_add(self.config.pressure.wait);
        while reclaimed.freed_bytes < missing_bytes {
            let stamps: Vec<Stamp> = {
                let state = self.state();
                let first = state.pending.front();
                first.map_or_else(Vec::new, |first| first.stamps().collect())
            };
            if stamps.is_empty() {
                break;
            }
            for stamp in stamps {
                let left = end.saturating_sub(clock.now());
                if left.is_zero() || !self.order.wait(stamp, Timeout::After(left))?.is_done() {
                    return Ok(reclaimed);
                }
            }
            reclaimed = reclaimed + Reclaimed::freed(self.settle_all()?);
        }
        Ok(reclaimed)
    }

    /// Bytes that may still be taken, as far as it is known: others may be faster.
    fn room_bytes(&self) -> Result<u64> {
        let free = self.driver.memory_info()?.free_bytes;
        Ok(self.config.budget.as_ref().map_or(free, |budget| free.min(budget.room_bytes())))
    }

    /// Goes down the ladder until the request is met.
    #[cold]
    pub(super) fn reclaim_for(
        &self,
        request: &AllocationRequest,
        pages: u32,
        refused: GrowError,
    ) -> Result<PageRun> {
        let mut refused = match refused {
            GrowError::Driver(error) if !error.is_oom() => return Err(error.into()),
            refused => refused,
        };
        let mut attempts = Vec::new();
        for step in self.config.pressure.steps.iter().copied() {
            let reclaimed = self.take_step(step, u64::from(pages) * PAGE_BYTES)?;
            attempts.push(ReclaimAttempt { step, reclaimed });
            // Callbacks may have freed more than they say, or something else.
            if !reclaimed.is_nothing() || step == ReclaimStep::Callbacks {
                if step > ReclaimStep::IdlePages {
                    // What came free lies where the request does not fit; others may have room for its pages.
                    self.release_idle()?;
                }
                match self.obtain(pages) {
                    Ok(run) => return Ok(run),
                    Err(GrowError::Driver(error)) if !error.is_oom() => return Err(error.into()),
                    Err(error) => refused = error,
                }
            }
        }
        Err(self.explain(request, pages, refused, attempts))
    }

    fn explain(
        &self,
        request: &AllocationRequest,
        pages: u32,
        refused: GrowError,
        attempts: Vec<ReclaimAttempt>,
    ) -> Error {
        let counted = self.accounting();
        let state = self.state();
        let mut waited_for = state.pending.iter().flat_map(|pending| pending.stamps());
        let mut exhausted = Exhausted {
            rounded_bytes: u64::from(pages) * PAGE_BYTES,
            pending_until: waited_for.find(|stamp| !self.order.is_complete(*stamp)),
            top_tags: state.map.top_tags(TOP_TAGS),
            attempts,
            ..Exhausted::over("pages", request.bytes, &counted)
        };
        refused.write_into(&mut exhausted);
        ErrorKind::from(exhausted).into()
    }
}
