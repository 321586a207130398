//! Which physical memory can be reached at which pages of the address window.
//!
//! A *frame* is one physical allocation of one or more pages. It is first mapped in the region of its arena, at the lowest free address: its
//! *original* place. When a request needs more contiguous pages than are free, free frames are mapped a second time, one after the
//! other, at new addresses: a *contiguous remap*. A frame has one *current* place, where its bytes are handed out. Its other mappings stay,
//! because mapping costs about 35 us a frame, and a program that repeats itself asks for the same frames in the same order again. Such a
//! request finds the remap and makes no driver call. The design and its figures are in `docs/design/0011-remapping.md`.
//!
//! ```text
//!   window   | region 0: f0 f1 f2 f3 f4 ... | region 1: ... | remaps: f1 f4 | f3 f1 f2 | ........ |
//!   current              f0       f3                                f1 f4
//! ```
//!
//! When nothing of an arena is in use any more, its frames return to their original places, where the longest free runs are.
//! This file keeps tables; it does not call the driver.

use std::ops::Range;

use kiln_driver::PagesId;

use super::free_runs::FreeRuns;
use super::page_backing::PAGE_BYTES;
use super::physical_page_selection::{FrameBounds, FrameRun, SelectedFrames};
use super::remap_table::{RemapRef, RemapTable};
use crate::exported_pages::Located;
use crate::last_use::Stamp;
use crate::try_reserve::{HostOutOfMemory, TryGrow};

/// No frame.
pub(super) const NONE: u32 = u32::MAX;
/// Arenas that have a region; the others grow between the remaps.
const REGIONS: u32 = 64;

/// The frames of one address window and where they are mapped.
#[derive(Debug)]
pub(crate) struct FrameTable {
    frames: Vec<Frame>,
    vacant_frames: Vec<u32>,
    regions: Vec<Region>,
    /// Pages of a region, as a power of two.
    region_bits: u32,
    remaps: RemapTable,
    /// Scratch space for original places, kept so that a layout reset allocates nothing.
    originals: Vec<PageRun>,
}

/// One physical allocation.
#[derive(Clone, Copy, Debug)]
struct Frame {
    handle: PagesId,
    pages: u32,
    owner: u32,
    /// The first page of its original place.
    original: u32,
    /// The entry of the remap table that has its original place; `NONE` if that is in a region.
    original_remap: u32,
}

/// The part of the window in which an arena grows.
#[derive(Clone, Debug, Default)]
struct Region {
    /// The frame whose original place has each page, as far as the region was ever mapped.
    frames: Vec<u32>,
    /// Pages that were unmapped again.
    free_runs: FreeRuns,
}

/// Contiguous pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PageRun {
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
}

impl PageRun {
    /// The page after the last one.
    #[inline]
    pub(crate) fn end(self) -> u32 {
        self.first_page + self.pages
    }

    /// Its first byte, counted from the start of the window.
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.first_page) * PAGE_BYTES
    }

    /// Its length in bytes.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE_BYTES
    }
}

/// A place for new frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GrowthSite {
    pub(crate) run: PageRun,
    /// Whether it continues the region of the arena.
    pub(crate) in_region: bool,
}

impl FrameTable {
    /// A table for a window of `window_pages` over a device that has `device_pages`.
    pub(crate) fn new(window_pages: u32, device_pages: u32) -> Self {
        let wanted = device_pages.max(1).next_power_of_two();
        let most = (window_pages / (4 * REGIONS)).max(1);
        let region_bits = wanted.min(most).ilog2();
        Self {
            frames: Vec::new(),
            vacant_frames: Vec::new(),
            regions: vec![Region::default(); REGIONS as usize],
            region_bits,
            remaps: RemapTable::new(REGIONS << region_bits, window_pages),
            originals: Vec::new(),
        }
    }

    /// The remaps.
    pub(crate) fn remaps(&mut self) -> &mut RemapTable {
        &mut self.remaps
    }

    /// Makes room in the tables for `frames` frames with `pages` pages in all.
    pub(crate) fn try_grow(&mut self, arena: u32, frames: u64, pages: u32) -> Result<(), HostOutOfMemory> {
        let frames = usize::try_from(frames).unwrap_or(usize::MAX);
        self.frames.try_grow(frames)?;
        self.vacant_frames.try_grow(frames)?;
        match self.regions.get_mut(arena as usize) {
            Some(region) => region.frames.try_grow(pages as usize)?,
            None => self.remaps.try_grow(pages)?,
        }
        Ok(())
    }

    /// Addresses for new frames of an arena; none when the window is full.
    pub(crate) fn site(&mut self, arena: u32, pages: u32) -> Option<GrowthSite> {
        if let Some(region) = self.regions.get_mut(arena as usize) {
            if let Some(run) = region.free_runs.take(pages) {
                return Some(GrowthSite { run, in_region: false });
            }
            let next = region.frames.len() as u32;
            if pages <= (1 << self.region_bits) - next {
                region.frames.resize((next + pages) as usize, NONE);
                let first_page = (arena << self.region_bits) + next;
                return Some(GrowthSite { run: PageRun { first_page, pages }, in_region: true });
            }
        }
        self.remaps.take_addresses(pages).map(|run| GrowthSite { run, in_region: false })
    }

    /// Returns addresses at which nothing was mapped.
    pub(crate) fn return_site(&mut self, site: GrowthSite) {
        match self.region_of(site.run.first_page) {
            Some((region, _)) => self.regions[region].free_runs.add(site.run),
            None => self.remaps.return_addresses(site.run),
        }
    }

    /// Enters frames that were mapped one after the other from a page on.
    pub(crate) fn enter(&mut self, arena: u32, first_page: u32, frames: &[(PagesId, u32)]) {
        let mut page = first_page;
        let mut entered = Vec::with_capacity(frames.len());
        for (handle, pages) in frames {
            let frame =
                Frame { handle: *handle, pages: *pages, owner: arena, original: page, original_remap: NONE };
            entered.push(self.add_frame(frame));
            page += pages;
        }
        match self.region_of(first_page) {
            Some((region, offset)) => {
                let pages = self.regions[region].frames[offset..].iter_mut();
                let born = entered.iter().zip(frames).flat_map(|(at, (_, pages))| (0..*pages).map(|_| *at));
                pages.zip(born).for_each(|(page, frame)| *page = frame);
            }
            None => {
                let sizes: Vec<u32> = frames.iter().map(|(_, pages)| *pages).collect();
                let remap = self.remaps.insert_original(first_page, &entered, &sizes);
                entered.iter().for_each(|at| self.frames[*at as usize].original_remap = remap);
            }
        }
    }

    /// The handle of a frame.
    pub(crate) fn handle(&self, frame: u32) -> Option<PagesId> {
        self.frames.get(frame as usize).map(|entry| entry.handle)
    }

    /// Adds the frames of a run to a list.
    #[inline]
    pub(crate) fn list_frames(&self, row: FrameRun, frames: &mut Vec<u32>) {
        let Some((region, offset)) = self.region_of(row.first_page) else {
            self.remaps.list_frames(row, frames);
            return;
        };
        let pages = &self.regions[region].frames[offset..offset + row.pages as usize];
        let mut at = 0;
        while let Some(frame) = pages.get(at) {
            frames.push(*frame);
            at += self.frames[*frame as usize].pages as usize;
        }
    }

    /// The frames whose current place is in a range of pages, in order, up to the first page without memory.
    pub(crate) fn located(&self, from: u32, end: u32) -> Vec<Located> {
        let Some((region, _)) = self.region_of(from) else {
            let frames = self.remaps.frames_at(from, end);
            return frames.into_iter().filter_map(|(at, run)| self.located_at(at, run)).collect();
        };
        let (mut page, mut located) = (from, Vec::new());
        while let Some((_, offset)) = self.region_of(page).filter(|(at, _)| page < end && *at == region) {
            let Some(at) = self.regions[region].frames.get(offset).copied() else { break };
            let Some(frame) = self.frames.get(at as usize) else { break };
            let run = PageRun { first_page: frame.original, pages: frame.pages };
            located.extend(self.located_at(at, run));
            page = run.end();
        }
        located
    }

    fn located_at(&self, frame: u32, run: PageRun) -> Option<Located> {
        let pages = self.handle(frame)?;
        Some(Located { pages, start: run.offset(), bytes: run.bytes() })
    }

    /// Addresses for a remap of these frames; none when the window is full.
    pub(crate) fn new_remap(&mut self, frames: &[u32], key: u64) -> Option<RemapRef> {
        let sizes: Vec<u32> = frames.iter().map(|frame| self.frames[*frame as usize].pages).collect();
        self.remaps.add(frames, &sizes, key)
    }

    /// Makes a remap the current place of the frames of `runs`. `now` is the newest submission of their arena.
    #[inline]
    pub(crate) fn move_frames(&mut self, runs: &[SelectedFrames], remap: u32, now: Stamp) {
        for run in runs {
            if self.region_of(run.row.first_page).is_none() {
                self.remaps.leave(run.row, now);
            }
        }
        self.remaps.settle(remap);
    }

    /// Makes another arena the owner of the frames of a run; they stay where they are.
    pub(crate) fn change_owner(&mut self, row: FrameRun, arena: u32) {
        let mut frames = Vec::new();
        self.list_frames(row, &mut frames);
        frames.into_iter().for_each(|frame| self.frames[frame as usize].owner = arena);
    }

    /// The pages of the region of an arena; none for one that has no region.
    pub(crate) fn region(&self, arena: u32) -> Range<u32> {
        if arena < REGIONS { arena << self.region_bits..(arena + 1) << self.region_bits } else { 0..0 }
    }

    /// Makes the original places of all frames of an arena their current ones; returns the runs they form there, in order. `current` are their
    /// current places, and `now` is the newest submission of the arena.
    pub(crate) fn reset_layout(
        &mut self,
        arena: u32,
        current: impl Iterator<Item = PageRun>,
        now: Stamp,
    ) -> &[PageRun] {
        for place in current.filter(|place| place.first_page >> self.region_bits >= REGIONS) {
            if let Some(row) = self.remaps.whole_frames(place.first_page, place.end(), place.pages) {
                self.remaps.leave(row, now);
            }
        }
        let rows = &mut self.originals;
        rows.clear();
        for frame in self.frames.iter().filter(|frame| frame.owner == arena) {
            if frame.original_remap != NONE {
                self.remaps.return_frame(frame.original_remap);
            }
            rows.push(PageRun { first_page: frame.original, pages: frame.pages });
        }
        rows.sort_unstable();
        rows.dedup_by(|next, row| {
            let joined = row.first_page + row.pages == next.first_page;
            if joined {
                row.pages += next.pages;
            }
            joined
        });
        rows
    }

    /// Removes the frames of a run; returns their handles, to be destroyed, and where each is mapped. `now` is the newest submission of
    /// the arena, to which their current places no longer belong.
    pub(crate) fn take_frames(&mut self, row: FrameRun, now: Stamp) -> Vec<(PagesId, Vec<PageRun>)> {
        let mut frames = Vec::new();
        self.list_frames(row, &mut frames);
        if self.region_of(row.first_page).is_none() {
            self.remaps.leave(row, now);
        }
        frames.into_iter().filter_map(|frame| self.take_frame(frame)).collect()
    }

    fn take_frame(&mut self, frame: u32) -> Option<(PagesId, Vec<PageRun>)> {
        let entry = *self.frames.get(frame as usize)?;
        let mut places = self.remaps.remove_frame(frame);
        if let Some((region, offset)) = self.region_of(entry.original) {
            let original = PageRun { first_page: entry.original, pages: entry.pages };
            let pages = self.regions[region].frames.iter_mut().skip(offset).take(entry.pages as usize);
            pages.for_each(|page| *page = NONE);
            self.regions[region].free_runs.add(original);
            places.push(original);
        }
        self.frames[frame as usize].owner = NONE;
        self.vacant_frames.push(frame);
        Some((entry.handle, places))
    }

    /// The handles of all frames.
    pub(crate) fn handles(&self) -> Vec<PagesId> {
        self.frames.iter().filter(|frame| frame.owner != NONE).map(|frame| frame.handle).collect()
    }

    fn add_frame(&mut self, frame: Frame) -> u32 {
        if let Some(at) = self.vacant_frames.pop() {
            self.frames[at as usize] = frame;
            return at;
        }
        self.frames.push(frame);
        (self.frames.len() - 1) as u32
    }

    /// The region that a page lies in, and where in it.
    #[inline]
    fn region_of(&self, page: u32) -> Option<(usize, usize)> {
        let region = page >> self.region_bits;
        (region < REGIONS).then_some((region as usize, (page & ((1 << self.region_bits) - 1)) as usize))
    }

    /// The frame whose original place has a page of a region: its first page, and the page after its last.
    fn bounds(&self, region: usize, offset: usize) -> (u32, u32) {
        let frame =
            self.regions[region].frames.get(offset).and_then(|frame| self.frames.get(*frame as usize));
        // Callers ask only about pages with memory.
        frame.map_or((NONE, NONE), |frame| (frame.original, frame.original + frame.pages))
    }

    /// The first end of a frame at or after a page of a region.
    fn first_boundary(&self, page: u32) -> u32 {
        let Some((region, offset)) = self.region_of(page) else { return page };
        let (first, end) = self.bounds(region, offset);
        if first == page { page } else { end }
    }

    /// The last end of a frame at or before a page of a region, which is not the region's first.
    fn last_boundary(&self, page: u32) -> u32 {
        let Some((region, offset)) = self.region_of(page - 1) else { return page };
        let (first, end) = self.bounds(region, offset);
        if end == page { page } else { first }
    }
}

impl FrameBounds for FrameTable {
    #[inline]
    fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRun> {
        if from >= end {
            return None;
        }
        if self.region_of(from).is_none() {
            return self.remaps.whole_frames(from, end, pages);
        }
        let first_page = self.first_boundary(from);
        if first_page >= end {
            return None;
        }
        let last = self.last_boundary(end);
        let enough = first_page.saturating_add(pages);
        let end = if enough < last { self.first_boundary(enough).min(last) } else { last };
        let pages = end.saturating_sub(first_page);
        (pages > 0).then_some(FrameRun {
            first_page,
            pages,
            hint: (0, 0, 0),
            is_first: true,
            is_last: end == last,
        })
    }

    fn skip_frames(&self, row: FrameRun, pages: u32) -> FrameRun {
        if self.region_of(row.first_page).is_none() {
            return self.remaps.skip_frames(row, pages);
        }
        let first_page = self.last_boundary(row.first_page + pages.min(row.pages));
        let skipped = first_page - row.first_page;
        FrameRun { first_page, pages: row.pages - skipped, is_first: skipped == 0, ..row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIB: u64 = 1 << 40;

    #[test]
    fn lanes_take_a_quarter_of_the_addresses_at_most_and_folds_have_the_rest() {
        let pages = |bytes: u64| (bytes / PAGE_BYTES) as u32;
        for (window_bytes, device_bytes) in [(32 * TIB, 141 << 30), (16 * TIB, 24 << 30), (TIB, 141 << 30)] {
            let mut frame_table = FrameTable::new(pages(window_bytes), pages(device_bytes));
            let regions_end = frame_table.region(REGIONS - 1).end;
            assert!(regions_end <= pages(window_bytes) / 4, "{regions_end} of {}", pages(window_bytes));
            assert_eq!(frame_table.region(REGIONS), 0..0);
            let rest = pages(window_bytes) - regions_end;
            let run = frame_table.remaps().take_addresses(rest).unwrap();
            assert_eq!((run.first_page, run.pages), (regions_end, rest));
            assert_eq!(frame_table.remaps().take_addresses(1), None);
        }
    }
}
