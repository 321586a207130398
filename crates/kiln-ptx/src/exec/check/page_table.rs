//! The pages of the race check for global memory, by their numbers: what a launch shares, and what each of its blocks remembers.
//!
//! Neighbouring pages are made together, so that a block rarely asks for more of them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::page_hasher::PageHasher;
use super::shadow_page::PAGE_BYTES;
use super::shared_page::SharedPage;
use crate::exec::own_line::OwnLine;

/// Parts of the table, each with a lock.
const SHARDS: usize = 64;
/// Pages that are made together: those of 16 KiB of memory.
const GROUP_PAGES: u64 = 16;
/// Groups a block remembers, and the bits of that.
const CACHED_BITS: u32 = 7;
const CACHED: usize = 1 << CACHED_BITS;

/// Groups that are kept for the next launches: 5 MiB. A launch that touches much memory makes that many, and memory that is fresh from the kernel is slow.
const MOST_SPARE: usize = 1024;

/// Neighbouring pages.
pub(super) struct PageGroup {
    pages: Box<[SharedPage]>,
}

/// Groups of launches that have ended.
static SPARE: OwnLine<Mutex<Vec<Arc<PageGroup>>>> = OwnLine::new(Mutex::new(Vec::new()));

type Groups = HashMap<u64, Arc<PageGroup>, BuildHasherDefault<PageHasher>>;

/// All pages of a launch.
pub(super) struct PageTable {
    shards: Box<[OwnLine<Mutex<Groups>>]>,
}

impl PageTable {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| OwnLine::default()).collect() }
    }

    /// Calls `f` for a page, if anything was accessed there.
    pub(super) fn with_known<T>(&self, number: u64, f: impl FnOnce(&SharedPage) -> T) -> Option<T> {
        let group = self.shard(number / GROUP_PAGES).get(&(number / GROUP_PAGES)).cloned()?;
        Some(group.page(number)).filter(|page| page.is_touched()).map(f)
    }

    /// Forgets the pages of a part of memory that starts where a group does, and that has its groups for itself.
    pub(super) fn drop_pages(&self, start: u64, bytes: u64) {
        let group_bytes = GROUP_PAGES * PAGE_BYTES;
        for number in start / group_bytes..start.saturating_add(bytes).div_ceil(group_bytes) {
            self.shard(number).remove(&number);
        }
    }

    fn group(&self, number: u64) -> Arc<PageGroup> {
        Arc::clone(self.shard(number).entry(number).or_insert_with(PageGroup::new))
    }

    fn shard(&self, group: u64) -> MutexGuard<'_, Groups> {
        self.shards[group as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PageTable {
    fn drop(&mut self) {
        let mut spare = spare();
        for shard in &mut self.shards {
            let groups = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            let room = MOST_SPARE.saturating_sub(spare.len());
            spare.extend(groups.drain().map(|(_, group)| group).take(room));
        }
    }
}

fn spare() -> MutexGuard<'static, Vec<Arc<PageGroup>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PageGroup {
    /// Pages that nothing was accessed in, in the room of others if there is some.
    fn new() -> Arc<Self> {
        let used = spare().pop();
        if let Some(mut group) = used
            && let Some(Self { pages }) = Arc::get_mut(&mut group)
        {
            pages.iter_mut().filter(|page| page.is_touched()).for_each(|page| *page = SharedPage::default());
            return group;
        }
        Arc::new(Self { pages: (0..GROUP_PAGES).map(|_| SharedPage::default()).collect() })
    }

    #[inline(always)]
    fn page(&self, number: u64) -> &SharedPage {
        &self.pages[(number % GROUP_PAGES) as usize]
    }
}

/// A group of pages with its number.
type NumberedGroup = (u64, Arc<PageGroup>);

/// The pages that a block used last.
pub(super) struct PageCache {
    groups: Box<[Option<NumberedGroup>; CACHED]>,
}

impl PageCache {
    pub(super) fn new() -> Self {
        Self { groups: Box::new([const { None }; CACHED]) }
    }

    /// A page by its number.
    #[inline]
    pub(super) fn page(&mut self, table: &PageTable, number: u64) -> &SharedPage {
        let group = number / GROUP_PAGES;
        // Arrays often lie a power of two apart: their groups must not change places with each other.
        let place = group.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - CACHED_BITS);
        let slot = &mut self.groups[place as usize % CACHED];
        if slot.as_ref().is_none_or(|(known, _)| *known != group) {
            *slot = None;
        }
        slot.get_or_insert_with(|| (group, table.group(group))).1.page(number)
    }
}
