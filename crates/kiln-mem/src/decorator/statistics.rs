//! Counting what passes through.

use std::fmt;

use kiln_sync::PerThread;

use super::{free_below, unwrap};
use crate::accounting::Accounting;
use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::ladder::{Relief, Rung};
use crate::ledger::{self, Counts, Ledger, Page};
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::Stamps;
use crate::tag::AllocTag;

/// Tags named in an error that passes by.
const TOP_TAGS: usize = 5;

/// Counts allocations, frees and live bytes by tag, and the peak; each thread counts for itself.
///
/// A heap counts in the same way. This is for what is around it: what of a budget, a guard or a pool is whose.
pub struct Statistics<R> {
    key: ResourceKey,
    ledger: Ledger,
    pages: PerThread<Page>,
    inner: R,
}

/// What happened to a tag since this was made; a task that has a tag of its own measures itself with it, and nobody else.
pub struct Scope<'a, R> {
    statistics: &'a Statistics<R>,
    tag: AllocTag,
    before: Counts,
}

impl<R: MemoryResource> Statistics<R> {
    /// Puts counters around a resource.
    pub fn new(inner: R) -> Self {
        Self { key: ResourceKey::fresh(), ledger: Ledger::default(), pages: PerThread::new(), inner }
    }

    /// What was done for all tags together.
    pub fn total(&self) -> Counts {
        ledger::total(self.pages.iter())
    }

    /// What was done for a tag.
    pub fn counts(&self, tag: AllocTag) -> Counts {
        ledger::count(self.pages.iter(), tag)
    }

    /// What was done for each tag.
    pub fn counts_by_tag(&self) -> Vec<(AllocTag, Counts)> {
        ledger::by_tag(self.pages.iter())
    }

    /// The most that was live at once; exact for one thread, off by at most 1 MiB, or a 256th of what was live, for each
    /// further one.
    pub fn peak_bytes(&self) -> u64 {
        self.ledger.peak_bytes(self.pages.iter())
    }

    /// Measures what happens to a tag from here on.
    pub fn scope(&self, tag: AllocTag) -> Scope<'_, R> {
        Scope { statistics: self, tag, before: self.counts(tag) }
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

impl<R: MemoryResource> Scope<'_, R> {
    /// What was done for the tag since the scope was made.
    pub fn counts(&self) -> Counts {
        self.statistics.counts(self.tag).since(&self.before)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Statistics<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    #[inline]
    fn allocate(&self, request: &Request) -> Result<DeviceBlock> {
        match self.inner.allocate(request) {
            Ok(block) => {
                self.ledger.note_allocated(self.pages.own(|_| Page::new()), request.tag, request.bytes);
                Ok(block.rebound(self.key))
            }
            Err(mut error) => {
                if let Some(exhausted) = error.exhausted_mut()
                    && exhausted.top_tags.is_empty()
                {
                    exhausted.top_tags = ledger::top_tags(self.pages.iter(), TOP_TAGS);
                }
                Err(error)
            }
        }
    }

    #[inline]
    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let (tag, bytes) = (block.tag(), block.bytes());
        free_below(unwrap(block, self.key, &self.inner)?, uses, self.key, &self.inner)?;
        self.ledger.note_freed(self.pages.own(|_| Page::new()), tag, bytes);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reap(&self, rung: Rung) -> Result<Relief> {
        self.inner.reap(rung)
    }
}

impl<R: MemoryResource> fmt::Display for Statistics<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stats({})", self.inner)
    }
}
