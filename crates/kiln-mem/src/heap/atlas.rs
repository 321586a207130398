//! Which physical memory can be reached at which pages of the address window.
//!
//! A *frame* is one physical allocation, some pages long. It is mapped at its birth, in the lane of the arena it was
//! made for, lowest address first. When a request needs more pages in a row than are free in a row, free frames are
//! mapped a second time, one after the other, as a *fold*: the same memory under new, contiguous addresses. A frame
//! has one *home* at a time, the place where its bytes are handed out. Its other mappings stay, because mapping costs
//! about 35 us a frame and a program that repeats itself asks for the same frames in the same order again: a fold is
//! found by its list of frames, and folding then costs no driver call.
//!
//! ```text
//!   window   | lane 0: f0 f1 f2 f3 f4 ..... | lane 1: ... | folds: f1 f4 | f3 f1 f2 | ........ |
//!                      f0       f3    homes                       f1 f4
//! ```
//!
//! When nothing of an arena is in use any more its frames go home to their births, where the longest rows are.
//! All of this is bookkeeping; the driver is called by others.

use std::ops::Range;

use kiln_driver::PagesId;

use super::choose::{FrameMap, FrameRow, Run};
use super::folds::{Folds, NewFold};
use super::gaps::Gaps;
use super::page_ground::PAGE_BYTES;
use crate::page_part::Located;
use crate::stamp::Stamp;

/// No frame.
pub(super) const NONE: u32 = u32::MAX;
/// Arenas with a lane of their own; the others grow among the folds.
const LANES: u32 = 64;

/// The books of one address window.
#[derive(Debug)]
pub(crate) struct Atlas {
    frames: Vec<Frame>,
    vacant_frames: Vec<u32>,
    lanes: Vec<Lane>,
    /// Pages of a lane, as a power of two.
    lane_bits: u32,
    folds: Folds,
    /// Where frames go home to, kept so that going home takes no memory from the host.
    births: Vec<PageRun>,
}

/// One physical allocation.
#[derive(Clone, Copy, Debug)]
struct Frame {
    handle: PagesId,
    pages: u32,
    owner: u32,
    /// The first page of its birth.
    birth: u32,
    /// The fold it was born in; `NONE` in a lane.
    birth_fold: u32,
}

/// Where an arena grows.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The frame born at each page, as far as the lane was ever mapped.
    frames: Vec<u32>,
    /// Pages that were unmapped again.
    gaps: Gaps,
}

/// Pages in a row.
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
pub(crate) struct Site {
    pub(crate) run: PageRun,
    /// Whether it continues the lane of the arena.
    pub(crate) in_lane: bool,
}

impl Atlas {
    /// Books for a window of so many pages over a device that has `device_pages`.
    pub(crate) fn new(window_pages: u32, device_pages: u32) -> Self {
        let wanted = device_pages.max(1).next_power_of_two();
        let most = (window_pages / (4 * LANES)).max(1);
        let lane_bits = wanted.min(most).ilog2();
        Self {
            frames: Vec::new(),
            vacant_frames: Vec::new(),
            lanes: vec![Lane::default(); LANES as usize],
            lane_bits,
            folds: Folds::new(LANES << lane_bits, window_pages),
            births: Vec::new(),
        }
    }

    /// The folds.
    pub(crate) fn folds(&mut self) -> &mut Folds {
        &mut self.folds
    }

    /// Addresses for new frames of an arena; none when the window is full.
    pub(crate) fn site(&mut self, arena: u32, pages: u32) -> Option<Site> {
        if let Some(lane) = self.lanes.get_mut(arena as usize) {
            if let Some(run) = lane.gaps.take(pages) {
                return Some(Site { run, in_lane: false });
            }
            let next = lane.frames.len() as u32;
            if pages <= (1 << self.lane_bits) - next {
                lane.frames.resize((next + pages) as usize, NONE);
                let first_page = (arena << self.lane_bits) + next;
                return Some(Site { run: PageRun { first_page, pages }, in_lane: true });
            }
        }
        self.folds.take_addresses(pages).map(|run| Site { run, in_lane: false })
    }

    /// Gives addresses back that nothing was mapped at.
    pub(crate) fn give_up(&mut self, site: Site) {
        match self.lane_of(site.run.first_page) {
            Some((lane, _)) => self.lanes[lane].gaps.add(site.run),
            None => self.folds.return_addresses(site.run),
        }
    }

    /// Enters frames that were mapped one after the other from a page on.
    pub(crate) fn enter(&mut self, arena: u32, first_page: u32, frames: &[(PagesId, u32)]) {
        let mut page = first_page;
        let mut entered = Vec::with_capacity(frames.len());
        for (handle, pages) in frames {
            let frame = Frame { handle: *handle, pages: *pages, owner: arena, birth: page, birth_fold: NONE };
            entered.push(self.add_frame(frame));
            page += pages;
        }
        match self.lane_of(first_page) {
            Some((lane, offset)) => {
                let pages = self.lanes[lane].frames[offset..].iter_mut();
                let born = entered.iter().zip(frames).flat_map(|(at, (_, pages))| (0..*pages).map(|_| *at));
                pages.zip(born).for_each(|(page, frame)| *page = frame);
            }
            None => {
                let sizes: Vec<u32> = frames.iter().map(|(_, pages)| *pages).collect();
                let fold = self.folds.add_births(first_page, &entered, &sizes);
                entered.iter().for_each(|at| self.frames[*at as usize].birth_fold = fold);
            }
        }
    }

    /// The handle of a frame.
    pub(crate) fn handle(&self, frame: u32) -> Option<PagesId> {
        self.frames.get(frame as usize).map(|entry| entry.handle)
    }

    /// Adds the frames of a row to a list.
    #[inline]
    pub(crate) fn list_frames(&self, row: FrameRow, frames: &mut Vec<u32>) {
        let Some((lane, offset)) = self.lane_of(row.first_page) else {
            self.folds.list_frames(row, frames);
            return;
        };
        let pages = &self.lanes[lane].frames[offset..offset + row.pages as usize];
        let mut at = 0;
        while let Some(frame) = pages.get(at) {
            frames.push(*frame);
            at += self.frames[*frame as usize].pages as usize;
        }
    }

    /// The frames that have their homes at a range of pages, in order, as far as there is something mapped.
    pub(crate) fn located(&self, from: u32, end: u32) -> Vec<Located> {
        let Some((lane, _)) = self.lane_of(from) else {
            let frames = self.folds.frames_at(from, end);
            return frames.into_iter().filter_map(|(at, run)| self.located_at(at, run)).collect();
        };
        let (mut page, mut located) = (from, Vec::new());
        while let Some((_, offset)) = self.lane_of(page).filter(|(at, _)| page < end && *at == lane) {
            let Some(at) = self.lanes[lane].frames.get(offset).copied() else { break };
            let Some(frame) = self.frames.get(at as usize) else { break };
            let run = PageRun { first_page: frame.birth, pages: frame.pages };
            located.extend(self.located_at(at, run));
            page = run.end();
        }
        located
    }

    fn located_at(&self, frame: u32, run: PageRun) -> Option<Located> {
        let pages = self.handle(frame)?;
        Some(Located { pages, start: run.offset(), bytes: run.bytes() })
    }

    /// Addresses for a fold of these frames; none when the window is full.
    pub(crate) fn new_fold(&mut self, frames: &[u32], key: u64) -> Option<NewFold> {
        let sizes: Vec<u32> = frames.iter().map(|frame| self.frames[*frame as usize].pages).collect();
        self.folds.add(frames, &sizes, key)
    }

    /// Moves the home of the frames of an arena, whose newest submission is `now`, into a fold of them.
    #[inline]
    pub(crate) fn move_home(&mut self, runs: &[Run], fold: u32, now: Stamp) {
        for run in runs {
            if self.lane_of(run.row.first_page).is_none() {
                self.folds.leave(run.row, now);
            }
        }
        self.folds.settle(fold);
    }

    /// Gives the frames of a row to another arena, where they are.
    pub(crate) fn hand_over(&mut self, row: FrameRow, arena: u32) {
        let mut frames = Vec::new();
        self.list_frames(row, &mut frames);
        frames.into_iter().for_each(|frame| self.frames[frame as usize].owner = arena);
    }

    /// The pages of the lane of an arena; none for one that has no lane.
    pub(crate) fn lane(&self, arena: u32) -> Range<u32> {
        if arena < LANES { arena << self.lane_bits..(arena + 1) << self.lane_bits } else { 0..0 }
    }

    /// Moves all frames of an arena, whose newest submission is `now` and which has them in `homes`, to their births;
    /// returns the rows they form there, in order.
    pub(crate) fn go_home(
        &mut self,
        arena: u32,
        homes: impl Iterator<Item = PageRun>,
        now: Stamp,
    ) -> &[PageRun] {
        for home in homes.filter(|home| home.first_page >> self.lane_bits >= LANES) {
            if let Some(row) = self.folds.whole_frames(home.first_page, home.end(), home.pages) {
                self.folds.leave(row, now);
            }
        }
        let rows = &mut self.births;
        rows.clear();
        for frame in self.frames.iter().filter(|frame| frame.owner == arena) {
            if frame.birth_fold != NONE {
                self.folds.come_back(frame.birth_fold);
            }
            rows.push(PageRun { first_page: frame.birth, pages: frame.pages });
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

    /// Takes the frames of a row out, of an arena whose newest submission is `now`, and says where they are mapped and what
    /// to destroy. Their homes are free and belong to no arena any more.
    pub(crate) fn take_frames(&mut self, row: FrameRow, now: Stamp) -> Vec<(PagesId, Vec<PageRun>)> {
        let mut frames = Vec::new();
        self.list_frames(row, &mut frames);
        if self.lane_of(row.first_page).is_none() {
            self.folds.leave(row, now);
        }
        frames.into_iter().filter_map(|frame| self.take_frame(frame)).collect()
    }

    fn take_frame(&mut self, frame: u32) -> Option<(PagesId, Vec<PageRun>)> {
        let entry = *self.frames.get(frame as usize)?;
        let mut places = self.folds.lose(frame);
        if let Some((lane, offset)) = self.lane_of(entry.birth) {
            let birth = PageRun { first_page: entry.birth, pages: entry.pages };
            let pages = self.lanes[lane].frames.iter_mut().skip(offset).take(entry.pages as usize);
            pages.for_each(|page| *page = NONE);
            self.lanes[lane].gaps.add(birth);
            places.push(birth);
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

    /// The lane that a page lies in, and where in it.
    #[inline]
    fn lane_of(&self, page: u32) -> Option<(usize, usize)> {
        let lane = page >> self.lane_bits;
        (lane < LANES).then_some((lane as usize, (page & ((1 << self.lane_bits) - 1)) as usize))
    }

    /// The frame born at a page of a lane: its first page, and the page after its last.
    fn bounds(&self, lane: usize, offset: usize) -> (u32, u32) {
        let frame = self.lanes[lane].frames.get(offset).and_then(|frame| self.frames.get(*frame as usize));
        // Nobody asks about pages without memory.
        frame.map_or((NONE, NONE), |frame| (frame.birth, frame.birth + frame.pages))
    }

    /// The first end of a frame at or after a page of a lane.
    fn first_boundary(&self, page: u32) -> u32 {
        let Some((lane, offset)) = self.lane_of(page) else { return page };
        let (first, end) = self.bounds(lane, offset);
        if first == page { page } else { end }
    }

    /// The last end of a frame at or before a page of a lane, which is not the lane's first.
    fn last_boundary(&self, page: u32) -> u32 {
        let Some((lane, offset)) = self.lane_of(page - 1) else { return page };
        let (first, end) = self.bounds(lane, offset);
        if end == page { page } else { first }
    }
}

impl FrameMap for Atlas {
    #[inline]
    fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRow> {
        if from >= end {
            return None;
        }
        if self.lane_of(from).is_none() {
            return self.folds.whole_frames(from, end, pages);
        }
        let first_page = self.first_boundary(from);
        if first_page >= end {
            return None;
        }
        let last = self.last_boundary(end);
        let enough = first_page.saturating_add(pages);
        let end = if enough < last { self.first_boundary(enough).min(last) } else { last };
        let pages = end.saturating_sub(first_page);
        (pages > 0).then_some(FrameRow {
            first_page,
            pages,
            hint: (0, 0, 0),
            is_first: true,
            is_last: end == last,
        })
    }

    fn skip_frames(&self, row: FrameRow, pages: u32) -> FrameRow {
        if self.lane_of(row.first_page).is_none() {
            return self.folds.skip_frames(row, pages);
        }
        let first_page = self.last_boundary(row.first_page + pages.min(row.pages));
        let skipped = first_page - row.first_page;
        FrameRow { first_page, pages: row.pages - skipped, is_first: skipped == 0, ..row }
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
            let mut atlas = Atlas::new(pages(window_bytes), pages(device_bytes));
            let lanes_end = atlas.lane(LANES - 1).end;
            assert!(lanes_end <= pages(window_bytes) / 4, "{lanes_end} of {}", pages(window_bytes));
            assert_eq!(atlas.lane(LANES), 0..0);
            let rest = pages(window_bytes) - lanes_end;
            let run = atlas.folds().take_addresses(rest).unwrap();
            assert_eq!((run.first_page, run.pages), (lanes_end, rest));
            assert_eq!(atlas.folds().take_addresses(1), None);
        }
    }
}
