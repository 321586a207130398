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

use std::collections::HashMap;

use kiln_driver::PagesId;

use super::arena::FrameSpan;
use crate::stamp::Stamp;

/// No frame, or no fold.
const NONE: u32 = u32::MAX;
/// Pages of one leaf of the page table.
const LEAF_PAGES: usize = 4096;
/// Arenas with a lane of their own; the others grow among the folds.
const LANES: u32 = 64;

/// The books of one address window.
#[derive(Debug)]
pub(crate) struct Atlas {
    frames: Vec<Frame>,
    vacant_frames: Vec<u32>,
    /// The frame mapped at each page, in leaves that exist where something is mapped.
    leaves: Vec<Option<Box<[u32]>>>,
    lanes: Vec<Lane>,
    lane_pages: u32,
    folds: Vec<Fold>,
    vacant_folds: Vec<u32>,
    known_folds: HashMap<u64, u32>,
    fold_next: u32,
    /// Addresses below that were unmapped again, in order.
    fold_gaps: Vec<(u32, u32)>,
    window_pages: u32,
    frame_pages: u64,
}

/// One physical allocation.
#[derive(Clone, Copy, Debug)]
struct Frame {
    handle: PagesId,
    pages: u32,
    owner: u32,
    birth: u32,
    home: u32,
    home_fold: u32,
}

/// Where an arena grows.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Everything from here on was never mapped.
    next: u32,
    /// Pages below that were unmapped again, in order.
    gaps: Vec<(u32, u32)>,
}

/// Frames mapped in a row a second time.
#[derive(Debug)]
struct Fold {
    first_page: u32,
    pages: u32,
    /// The frames in a row; `NONE` for one that is gone.
    frames: Vec<u32>,
    /// Pages of each.
    sizes: Vec<u32>,
    /// How many of the frames have their home here.
    homes: u32,
    /// The last submission that may have used it, once it is nobody's home.
    idle_since: Option<Stamp>,
    key: u64,
}

/// Pages in a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PageRun {
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
}

/// A place for new frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Site {
    pub(crate) run: PageRun,
    /// Whether it continues the lane of the arena.
    pub(crate) in_lane: bool,
}

/// A fold that has its addresses but is not mapped yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewFold {
    pub(crate) fold: u32,
    pub(crate) run: PageRun,
}

/// A fold to be unmapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IdleFold {
    /// Its addresses, to be returned once it is unmapped.
    pub(crate) run: PageRun,
    /// Where in them something is mapped.
    pub(crate) mapped: Vec<PageRun>,
}

impl Atlas {
    /// Books for a window of so many pages over a device that has `device_pages`.
    pub(crate) fn new(window_pages: u32, device_pages: u32) -> Self {
        let lane_pages = device_pages.max(1).min(window_pages / (2 * LANES).min(window_pages.max(1))).max(1);
        Self {
            frames: Vec::new(),
            vacant_frames: Vec::new(),
            leaves: Vec::new(),
            lanes: vec![Lane::default(); LANES as usize],
            lane_pages,
            folds: Vec::new(),
            vacant_folds: Vec::new(),
            known_folds: HashMap::new(),
            fold_next: lane_pages.saturating_mul(LANES).min(window_pages),
            fold_gaps: Vec::new(),
            window_pages,
            frame_pages: 0,
        }
    }

    /// Pages of all frames.
    pub(crate) fn frame_pages(&self) -> u64 {
        self.frame_pages
    }

    /// How many folds are mapped.
    pub(crate) fn folds(&self) -> usize {
        self.folds.len() - self.vacant_folds.len()
    }

    /// Addresses for new frames of an arena; none when the window is full.
    pub(crate) fn site(&mut self, arena: u32, pages: u32) -> Option<Site> {
        if let Some(lane) = self.lanes.get_mut(arena as usize) {
            if let Some(run) = take_gap(&mut lane.gaps, pages) {
                return Some(Site { run, in_lane: false });
            }
            if lane.next + pages <= self.lane_pages {
                let first_page = arena * self.lane_pages + lane.next;
                lane.next += pages;
                return Some(Site { run: PageRun { first_page, pages }, in_lane: true });
            }
        }
        self.fold_addresses(pages).map(|run| Site { run, in_lane: false })
    }

    /// Gives addresses back that nothing was mapped at.
    pub(crate) fn give_up(&mut self, site: Site) {
        let PageRun { first_page, pages } = site.run;
        let arena = first_page / self.lane_pages;
        if let Some(lane) = self.lanes.get_mut(arena as usize) {
            let start = first_page - arena * self.lane_pages;
            if start + pages == lane.next {
                lane.next = start;
            } else {
                insert_gap(&mut lane.gaps, first_page, pages);
            }
        } else {
            self.return_fold_addresses(site.run);
        }
    }

    /// Enters frames that were mapped one after the other from a page on.
    pub(crate) fn enter(&mut self, arena: u32, first_page: u32, frames: &[(PagesId, u32)]) {
        let mut page = first_page;
        for (handle, pages) in frames {
            let frame = Frame {
                handle: *handle,
                pages: *pages,
                owner: arena,
                birth: page,
                home: page,
                home_fold: NONE,
            };
            let at = match self.vacant_frames.pop() {
                Some(at) => {
                    self.frames[at as usize] = frame;
                    at
                }
                None => {
                    self.frames.push(frame);
                    (self.frames.len() - 1) as u32
                }
            };
            self.write_leaves(page, *pages, at);
            page += pages;
            self.frame_pages += u64::from(*pages);
        }
    }

    /// The frame that has its home at a page.
    #[inline]
    pub(crate) fn frame_at(&self, page: u32) -> FrameSpan {
        let leaf = self.leaves.get(page as usize / LEAF_PAGES).and_then(Option::as_deref);
        let frame = leaf.and_then(|leaf| leaf.get(page as usize % LEAF_PAGES)).copied().unwrap_or(NONE);
        match self.frames.get(frame as usize) {
            Some(entry) => FrameSpan { frame, first_page: entry.home, pages: entry.pages },
            None => FrameSpan { frame: NONE, first_page: page, pages: 1 },
        }
    }

    /// The handle of a frame.
    pub(crate) fn handle(&self, frame: u32) -> Option<PagesId> {
        self.frames.get(frame as usize).map(|entry| entry.handle)
    }

    /// The fold of exactly these frames in this order, if there is one.
    pub(crate) fn known_fold(&self, frames: &[u32]) -> Option<PageRun> {
        let fold = self.folds.get(*self.known_folds.get(&key_of(frames))? as usize)?;
        (fold.frames == frames).then_some(PageRun { first_page: fold.first_page, pages: fold.pages })
    }

    /// Addresses for a fold of these frames; none when the window is full.
    pub(crate) fn new_fold(&mut self, frames: &[u32]) -> Option<NewFold> {
        let sizes: Vec<u32> = frames.iter().map(|frame| self.frames[*frame as usize].pages).collect();
        let run = self.fold_addresses(sizes.iter().sum())?;
        let entry = Fold {
            first_page: run.first_page,
            pages: run.pages,
            frames: frames.to_vec(),
            sizes,
            homes: 0,
            idle_since: None,
            key: key_of(frames),
        };
        let fold = match self.vacant_folds.pop() {
            Some(at) => {
                self.folds[at as usize] = entry;
                at
            }
            None => {
                self.folds.push(entry);
                (self.folds.len() - 1) as u32
            }
        };
        Some(NewFold { fold, run })
    }

    /// Enters a fold that was mapped.
    pub(crate) fn enter_fold(&mut self, fold: u32) {
        let (mut page, frames, key) = {
            let fold = &self.folds[fold as usize];
            (fold.first_page, fold.frames.clone(), fold.key)
        };
        for frame in frames {
            let pages = self.frames[frame as usize].pages;
            self.write_leaves(page, pages, frame);
            page += pages;
        }
        self.known_folds.insert(key, fold);
    }

    /// Forgets a fold that could not be mapped.
    pub(crate) fn abandon_fold(&mut self, new: NewFold) {
        self.return_fold_addresses(new.run);
        self.forget_fold(new.fold);
    }

    /// Moves the home of the frames of a fold into it, and their ownership to an arena whose newest submission is `now`.
    pub(crate) fn move_home(&mut self, frames: &[u32], first_page: u32, arena: u32, now: Stamp) {
        let fold = self.known_folds.get(&key_of(frames)).copied().unwrap_or(NONE);
        let mut page = first_page;
        for at in frames {
            let frame = &mut self.frames[*at as usize];
            let old = std::mem::replace(&mut frame.home_fold, fold);
            frame.home = page;
            frame.owner = arena;
            page += frame.pages;
            if let Some(old) = self.folds.get_mut(old as usize) {
                old.leave(now);
            }
        }
        if let Some(fold) = self.folds.get_mut(fold as usize) {
            fold.homes += frames.len() as u32;
            fold.idle_since = None;
        }
    }

    /// Gives the frames of a run of pages to another arena, where they are.
    pub(crate) fn hand_over(&mut self, run: PageRun, arena: u32) {
        let mut page = run.first_page;
        while page < run.first_page + run.pages {
            let span = self.frame_at(page);
            if let Some(frame) = self.frames.get_mut(span.frame as usize) {
                frame.owner = arena;
            }
            page += span.pages;
        }
    }

    /// Whether a row of pages is in the lane of an arena.
    pub(crate) fn is_in_lane(&self, arena: u32, row: PageRun) -> bool {
        arena < LANES && row.first_page / self.lane_pages == arena
    }

    /// The frames that have their homes in a row of pages.
    pub(crate) fn frames_in(&self, first_page: u32, pages: u32) -> Vec<u32> {
        let mut frames = Vec::new();
        let mut page = first_page;
        while page < first_page + pages {
            let span = self.frame_at(page);
            frames.push(span.frame);
            page += span.pages;
        }
        frames
    }

    /// Moves all frames of an arena, whose newest submission is `now`, to their births; returns the rows they form
    /// there, in order.
    pub(crate) fn go_home(&mut self, arena: u32, now: Stamp) -> Vec<PageRun> {
        let mut rows: Vec<PageRun> = Vec::new();
        for at in 0..self.frames.len() {
            let frame = &mut self.frames[at];
            if frame.owner != arena {
                continue;
            }
            frame.home = frame.birth;
            let fold = std::mem::replace(&mut frame.home_fold, NONE);
            rows.push(PageRun { first_page: frame.birth, pages: frame.pages });
            if let Some(fold) = self.folds.get_mut(fold as usize) {
                fold.leave(now);
            }
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

    /// Takes a fold out that is nobody's home and whose last use is over, and says where it is mapped; none if there is
    /// none.
    pub(crate) fn take_idle_fold(&mut self, is_over: impl Fn(Stamp) -> bool) -> Option<IdleFold> {
        let idle = |fold: &Fold| fold.homes == 0 && fold.idle_since.is_some_and(&is_over);
        let at = self.folds.iter().position(idle)?;
        let fold = &self.folds[at];
        let (run, mapped) = (PageRun { first_page: fold.first_page, pages: fold.pages }, fold.places());
        for place in &mapped {
            self.write_leaves(place.first_page, place.pages, NONE);
        }
        self.forget_fold(at as u32);
        Some(IdleFold { run, mapped })
    }

    /// Makes the addresses of a fold, which was unmapped, available again.
    pub(crate) fn return_fold_addresses(&mut self, run: PageRun) {
        insert_gap(&mut self.fold_gaps, run.first_page, run.pages);
        if let Some((first_page, pages)) = self.fold_gaps.last().copied()
            && first_page + pages == self.fold_next
        {
            self.fold_next = first_page;
            self.fold_gaps.pop();
        }
    }

    /// Takes a frame out and says where it is mapped and what to destroy. Its home is free and belongs to no arena any
    /// more.
    pub(crate) fn take_frame(&mut self, frame: u32) -> Option<(PagesId, Vec<PageRun>)> {
        let entry = *self.frames.get(frame as usize)?;
        let mut places = vec![PageRun { first_page: entry.birth, pages: entry.pages }];
        for fold in &mut self.folds {
            if let Some(place) = fold.lose(frame) {
                places.push(place);
                self.known_folds.remove(&fold.key);
            }
        }
        if let Some(fold) = self.folds.get_mut(entry.home_fold as usize) {
            fold.homes -= 1;
        }
        for place in &places {
            self.write_leaves(place.first_page, place.pages, NONE);
        }
        let lane = entry.birth / self.lane_pages;
        if let Some(lane) = self.lanes.get_mut(lane as usize) {
            insert_gap(&mut lane.gaps, entry.birth, entry.pages);
        }
        self.frame_pages -= u64::from(entry.pages);
        self.frames[frame as usize].owner = NONE;
        self.vacant_frames.push(frame);
        Some((entry.handle, places))
    }

    /// Everything that is mapped, and everything there is to destroy; nothing is left.
    pub(crate) fn take_all(&mut self) -> (Vec<PageRun>, Vec<PagesId>) {
        let frames: Vec<u32> = (0..self.frames.len() as u32).collect();
        let mut places = Vec::new();
        let mut handles = Vec::new();
        for frame in frames.into_iter().filter(|frame| !self.vacant_frames.contains(frame)) {
            places.push(PageRun {
                first_page: self.frames[frame as usize].birth,
                pages: self.frames[frame as usize].pages,
            });
            handles.push(self.frames[frame as usize].handle);
        }
        places.extend(self.folds.iter().flat_map(Fold::places));
        *self = Self::new(self.window_pages, self.lane_pages);
        (places, handles)
    }

    fn fold_addresses(&mut self, pages: u32) -> Option<PageRun> {
        if let Some(run) = take_gap(&mut self.fold_gaps, pages) {
            return Some(run);
        }
        let first_page = self.fold_next;
        let end = first_page.checked_add(pages).filter(|end| *end <= self.window_pages)?;
        self.fold_next = end;
        Some(PageRun { first_page, pages })
    }

    fn forget_fold(&mut self, fold: u32) {
        let entry = &mut self.folds[fold as usize];
        if self.known_folds.get(&entry.key) == Some(&fold) {
            self.known_folds.remove(&entry.key);
        }
        (entry.frames, entry.sizes, entry.idle_since) = (Vec::new(), Vec::new(), None);
        self.vacant_folds.push(fold);
    }

    fn write_leaves(&mut self, first_page: u32, pages: u32, frame: u32) {
        for page in first_page as usize..(first_page + pages) as usize {
            let leaf = page / LEAF_PAGES;
            if leaf >= self.leaves.len() {
                self.leaves.resize_with(leaf + 1, || None);
            }
            let leaf = self.leaves[leaf].get_or_insert_with(|| vec![NONE; LEAF_PAGES].into());
            leaf[page % LEAF_PAGES] = frame;
        }
    }
}

impl Fold {
    /// A frame has its home elsewhere from now on.
    fn leave(&mut self, now: Stamp) {
        self.homes -= 1;
        if self.homes == 0 {
            self.idle_since = Some(now);
        }
    }

    /// Forgets a frame that is gone; returns where it was mapped.
    fn lose(&mut self, frame: u32) -> Option<PageRun> {
        let at = self.frames.iter().position(|other| *other == frame)?;
        self.frames[at] = NONE;
        let first_page = self.first_page + self.sizes[..at].iter().sum::<u32>();
        Some(PageRun { first_page, pages: self.sizes[at] })
    }

    /// Where its frames are mapped.
    fn places(&self) -> Vec<PageRun> {
        let mut places = Vec::new();
        let mut first_page = self.first_page;
        for (frame, pages) in self.frames.iter().zip(&self.sizes) {
            if *frame != NONE {
                places.push(PageRun { first_page, pages: *pages });
            }
            first_page += pages;
        }
        places
    }
}

/// A number for a list of frames; lists are compared before it is trusted.
fn key_of(frames: &[u32]) -> u64 {
    frames.iter().fold(frames.len() as u64, |key, frame| {
        (key ^ u64::from(*frame)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

/// The first of the gaps that holds so many pages, or a part of it.
fn take_gap(gaps: &mut Vec<(u32, u32)>, pages: u32) -> Option<PageRun> {
    let at = gaps.iter().position(|(_, gap)| *gap >= pages)?;
    let (first_page, gap) = gaps[at];
    if gap == pages {
        gaps.remove(at);
    } else {
        gaps[at] = (first_page + pages, gap - pages);
    }
    Some(PageRun { first_page, pages })
}

fn insert_gap(gaps: &mut Vec<(u32, u32)>, first_page: u32, pages: u32) {
    let at = gaps.partition_point(|(first, _)| *first < first_page);
    gaps.insert(at, (first_page, pages));
    gaps.dedup_by(|next, gap| {
        let joined = gap.0 + gap.1 == next.0;
        if joined {
            gap.1 += next.1;
        }
        joined
    });
}
