//! What is done when pages are short, step by step, and what is said when nothing helped.

use kiln_driver::{Object, Timeout};

use super::Pages;
use crate::error::{Error, ErrorKind, Result};
use crate::exhausted::Exhausted;
use crate::heap::{GrowError, PAGE_BYTES, PageRun};
use crate::ladder::{Relief, Rung, Step};
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::{Stamp, StreamKey};

/// Tags named in an error.
const TOP_TAGS: usize = 5;

impl Pages {
    /// Unmaps what holds nothing; returns the bytes.
    fn release_idle(&self) -> Result<u64> {
        let mut released = 0;
        loop {
            let Some((run, handle)) = self.books().map.take_idle() else { return Ok(released) };
            let unmapped = self.driver.unmap(self.window.id, run.offset(), run.bytes());
            let mut books = self.books();
            books.map.give(run);
            if let Err(error) = unmapped {
                books.map.enter(run, handle);
                return Err(error.into());
            }
            books.counted.reserved_bytes -= run.bytes();
            drop(books);
            self.refund(run.bytes());
            self.driver.destroy(Object::Pages(handle))?;
            released += run.bytes();
        }
    }

    /// Asks how far the streams are that pending blocks wait for, and takes what is done.
    fn settle_all(&self) -> Result<u64> {
        let streams: Vec<StreamKey> = {
            let books = self.books();
            let stamps =
                books.pending.iter().flat_map(|pending| pending.uses.as_slice().iter().chain([&pending.own]));
            stamps.map(|stamp| stamp.stream).collect()
        };
        for stream in streams {
            self.order.refresh(stream)?;
        }
        Ok(self.settle(&mut self.books()))
    }

    /// Takes one step; `missing_bytes` is 0 where nobody asked for memory.
    pub(super) fn relieve(&self, rung: Rung, missing_bytes: u64) -> Result<Relief> {
        match rung {
            Rung::Completed => Ok(Relief::freed(self.settle_all()?)),
            Rung::IdlePages => Ok(Relief::released(self.release_idle()?)),
            Rung::Callbacks if missing_bytes > 0 => {
                let called = self.config.pressure.call_back(missing_bytes);
                Ok(Relief::freed(called.max(self.settle_all()?)))
            }
            Rung::Wait if missing_bytes > 0 => self.wait_for_pending(missing_bytes),
            // Nothing is cached, and nothing is handed on before its work is done.
            Rung::FrontCaches | Rung::Ordered | Rung::Callbacks | Rung::Wait => Ok(Relief::default()),
        }
    }

    /// Waits, for as long as the program allows, for what pending blocks wait for, the longest pending first, until enough
    /// came free. If all that is free, pending and not taken yet is not enough, waiting would be in vain.
    fn wait_for_pending(&self, missing_bytes: u64) -> Result<Relief> {
        let counted = self.accounting();
        let held = counted.free_bytes() + counted.pending_bytes;
        let mut relief = Relief::default();
        if held.saturating_add(self.room_bytes()?) < missing_bytes {
            return Ok(relief);
        }
        let clock = self.driver.clock();
        let end = clock.now().saturating_add(self.config.pressure.wait);
        while relief.freed_bytes < missing_bytes {
            let stamps: Vec<Stamp> = {
                let books = self.books();
                let first = books.pending.front();
                first.map_or_else(Vec::new, |first| first.stamps().collect())
            };
            if stamps.is_empty() {
                break;
            }
            for stamp in stamps {
                let left = end.saturating_sub(clock.now());
                if left.is_zero() || !self.order.wait(stamp, Timeout::After(left))?.is_done() {
                    return Ok(relief);
                }
            }
            relief = relief + Relief::freed(self.settle_all()?);
        }
        Ok(relief)
    }

    /// Bytes that may still be taken, as far as it is known: others may be faster.
    fn room_bytes(&self) -> Result<u64> {
        let free = self.driver.memory_info()?.free_bytes;
        Ok(self.config.budget.as_ref().map_or(free, |budget| free.min(budget.room_bytes())))
    }

    /// Goes down the ladder until the request is met.
    #[cold]
    pub(super) fn climb(&self, request: &Request, pages: u32, refused: GrowError) -> Result<PageRun> {
        let mut refused = match refused {
            GrowError::Driver(error) if !error.is_oom() => return Err(error.into()),
            refused => refused,
        };
        let mut steps = Vec::new();
        for rung in self.config.pressure.rungs.iter().copied() {
            let relief = self.relieve(rung, u64::from(pages) * PAGE_BYTES)?;
            steps.push(Step { rung, relief });
            // Callbacks may have freed more than they say, or something else.
            if !relief.is_nothing() || rung == Rung::Callbacks {
                if rung > Rung::IdlePages {
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
        Err(self.explain(request, pages, refused, steps))
    }

    fn explain(&self, request: &Request, pages: u32, refused: GrowError, steps: Vec<Step>) -> Error {
        let counted = self.accounting();
        let books = self.books();
        let mut waited_for = books.pending.iter().flat_map(|pending| pending.stamps());
        let mut exhausted = Exhausted {
            rounded_bytes: u64::from(pages) * PAGE_BYTES,
            pending_until: waited_for.find(|stamp| !self.order.is_complete(*stamp)),
            top_tags: books.map.top_tags(TOP_TAGS),
            steps,
            ..Exhausted::over("pages", request.bytes, &counted)
        };
        refused.write_into(&mut exhausted);
        ErrorKind::from(exhausted).into()
    }
}
