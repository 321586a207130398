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
            Rung::Wait if missing_bytes > 0 => self.wait_for_pending(),
            // Nothing is cached, and nothing is handed on before its work is done.
            Rung::FrontCaches | Rung::Ordered | Rung::Callbacks | Rung::Wait => Ok(Relief::default()),
        }
    }

    /// Waits, for as long as the program allows, until something pending is done.
    fn wait_for_pending(&self) -> Result<Relief> {
        let clock = self.driver.clock();
        let end = clock.now().saturating_add(self.config.pressure.wait);
        let mut relief = Relief::default();
        loop {
            let left = end.saturating_sub(clock.now());
            let stamps: Vec<Stamp> = {
                let books = self.books();
                let first = books.pending.front();
                first.map_or_else(Vec::new, |first| first.stamps().collect())
            };
            if left.is_zero() || stamps.is_empty() {
                return Ok(relief);
            }
            for stamp in stamps {
                if !self.order.wait(stamp, Timeout::After(left))?.is_done() {
                    return Ok(relief);
                }
            }
            relief = relief + Relief::freed(self.settle_all()?);
        }
    }

    /// Goes down the ladder until the request is met.
    #[cold]
    pub(super) fn climb(&self, request: &Request, pages: u32, refused: GrowError) -> Result<PageRun> {
        if !refused.is_shortage()
            && let GrowError::Driver(error) = refused
        {
            return Err(error.into());
        }
        let (mut refused, mut steps) = (refused, Vec::new());
        for rung in self.config.pressure.rungs.iter().copied() {
            let relief = self.relieve(rung, u64::from(pages) * PAGE_BYTES)?;
            steps.push(Step { rung, relief });
            // What a callback freed may be pending still, so idle pages are looked at again.
            if !relief.is_nothing() && rung > Rung::IdlePages {
                self.release_idle()?;
            }
            if !relief.is_nothing() {
                match self.obtain(pages) {
                    Ok(run) => return Ok(run),
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
