//! Which pages of a window have memory behind them, and which are in use. Bookkeeping only; the driver is called by others.

use std::collections::BTreeMap;

use kiln_driver::PagesId;

use crate::exported_pages::Located;
use crate::heap::{PAGE_BYTES, PageRun};
use crate::tag::AllocTag;

/// The pages of a window.
#[derive(Debug)]
pub(crate) struct PageMap {
    window_pages: u32,
    /// What is mapped, by its first page.
    frames: BTreeMap<u32, Frame>,
    /// Pages that are taken, by their first page.
    taken: BTreeMap<u32, TakenPages>,
}

/// One physical allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Frame {
    pages: u32,
    handle: PagesId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct TakenPages {
    pages: u32,
    /// Tag and bytes of the block; none while it is mapped, unmapped or pending.
    block: Option<(AllocTag, u64)>,
}

/// A place for a block, and where memory has to be mapped before it is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageSite {
    pub(crate) run: PageRun,
    pub(crate) holes: Vec<PageRun>,
}

impl PageMap {
    pub(crate) fn new(window_pages: u32) -> Self {
        Self { window_pages, frames: BTreeMap::new(), taken: BTreeMap::new() }
    }

    /// Takes the lowest `pages` contiguous pages that are mapped, or else the lowest that can be; none when the window is
    /// full.
    pub(crate) fn take(&mut self, pages: u32) -> Option<PageSite> {
        let window = PageRun { first_page: 0, pages: self.window_pages };
        let run = self
            .mapped_rows()
            .find_map(|row| self.free_in(row, pages))
            .or_else(|| self.free_in(window, pages))?;
        self.taken.insert(run.first_page, TakenPages { pages, block: None });
        Some(PageSite { run, holes: self.holes(run) })
    }

    /// Says whose block a taken run is from now on.
    pub(crate) fn hand_out(&mut self, run: PageRun, tag: AllocTag, bytes: u64) {
        if let Some(taken) = self.taken.get_mut(&run.first_page) {
            taken.block = Some((tag, bytes));
        }
    }

    /// Takes a block back, which stays taken; `false` if it is not live.
    pub(crate) fn take_back(&mut self, run: PageRun) -> bool {
        let live = self.taken.get_mut(&run.first_page).filter(|taken| taken.pages == run.pages);
        live.is_some_and(|taken| taken.block.take().is_some())
    }

    /// Makes a taken run free.
    pub(crate) fn give(&mut self, run: PageRun) {
        self.taken.remove(&run.first_page);
    }

    /// Enters an allocation that was mapped.
    pub(crate) fn enter(&mut self, run: PageRun, handle: PagesId) {
        self.frames.insert(run.first_page, Frame { pages: run.pages, handle });
    }

    /// Takes out an allocation of which nothing is in use. Its pages stay taken until it is unmapped.
    pub(crate) fn take_idle(&mut self) -> Option<(PageRun, PagesId)> {
        let idle = self.frames.iter().find_map(|(first_page, frame)| {
            let run = PageRun { first_page: *first_page, pages: frame.pages };
            self.free_in(run, run.pages).map(|run| (run, frame.handle))
        })?;
        self.frames.remove(&idle.0.first_page);
        self.taken.insert(idle.0.first_page, TakenPages { pages: idle.0.pages, block: None });
        Some(idle)
    }

    /// The allocations from the one that a byte of the window lies in, in order.
    pub(crate) fn located(&self, start: u64) -> impl Iterator<Item = Located> + '_ {
        let page = u32::try_from(start / PAGE_BYTES).unwrap_or(u32::MAX);
        let first = self.frames.range(..=page).next_back().map_or(page, |(first_page, _)| *first_page);
        self.frames.range(first..).map(|(first_page, frame)| Located {
            pages: frame.handle,
            start: u64::from(*first_page) * PAGE_BYTES,
            bytes: u64::from(frame.pages) * PAGE_BYTES,
        })
    }

    /// All handles.
    pub(crate) fn handles(&self) -> Vec<PagesId> {
        self.frames.values().map(|frame| frame.handle).collect()
    }

    /// Whether some block is live.
    pub(crate) fn has_live(&self) -> bool {
        self.taken.values().any(|taken| taken.block.is_some())
    }

    /// Pages of the longest mapped run that holds nothing.
    pub(crate) fn largest_free(&self) -> u32 {
        let mut largest = 0;
        for row in self.mapped_rows() {
            self.each_gap(row, |gap| {
                largest = largest.max(gap.pages);
                false
            });
        }
        largest
    }

    /// The tags that hold most, with their bytes.
    pub(crate) fn top_tags(&self, most: usize) -> Vec<(AllocTag, u64)> {
        let mut sums: BTreeMap<AllocTag, u64> = BTreeMap::new();
        for (tag, bytes) in self.taken.values().filter_map(|taken| taken.block) {
            *sums.entry(tag).or_default() += bytes;
        }
        let mut tags: Vec<(AllocTag, u64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
        tags.sort_by_key(|(tag, bytes)| (std::cmp::Reverse(*bytes), *tag));
        tags.truncate(most);
        tags
    }

    /// Rows of pages that are mapped without a gap, lowest first.
    fn mapped_rows(&self) -> impl Iterator<Item = PageRun> + '_ {
        let mut frames =
            self.frames.iter().map(|(first, frame)| PageRun { first_page: *first, pages: frame.pages });
        let mut next = frames.next();
        std::iter::from_fn(move || {
            let mut row = next?;
            next = frames.next();
            while let Some(frame) = next.filter(|frame| frame.first_page == row.end()) {
                row.pages += frame.pages;
                next = frames.next();
            }
            Some(row)
        })
    }

    /// The lowest `pages` contiguous pages of a run that are not taken.
    fn free_in(&self, stretch: PageRun, pages: u32) -> Option<PageRun> {
        let mut found = None;
        self.each_gap(stretch, |gap| {
            found = (gap.pages >= pages).then_some(PageRun { pages, ..gap });
            found.is_some()
        });
        found
    }

    /// Visits what is not taken of a stretch, lowest first, until one is enough.
    fn each_gap(&self, stretch: PageRun, mut is_enough: impl FnMut(PageRun) -> bool) {
        let before = self.taken.range(..stretch.first_page).next_back();
        let before_end = before.map_or(0, |(first, taken)| first + taken.pages);
        let mut at = stretch.first_page.max(before_end);
        for (first, taken) in self.taken.range(stretch.first_page..stretch.end()) {
            if *first > at && is_enough(PageRun { first_page: at, pages: first - at }) {
                return;
            }
            at = at.max(first + taken.pages);
        }
        if at < stretch.end() {
            is_enough(PageRun { first_page: at, pages: stretch.end() - at });
        }
    }

    /// What is not mapped of a run.
    fn holes(&self, run: PageRun) -> Vec<PageRun> {
        let mut holes = Vec::new();
        let before = self.frames.range(..run.first_page).next_back();
        let mut at = run.first_page.max(before.map_or(0, |(first, frame)| first + frame.pages));
        for (first, frame) in self.frames.range(run.first_page..run.end()) {
            if *first > at {
                holes.push(PageRun { first_page: at, pages: first - at });
            }
            at = first + frame.pages;
        }
        if at < run.end() {
            holes.push(PageRun { first_page: at, pages: run.end() - at });
        }
        holes
    }
}
