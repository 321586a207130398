//! Frames mapped in a row a second time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::atlas::{NONE, PageRun};
use super::choose::FrameRow;
use super::gaps::Gaps;
use super::habits::Habits;
use crate::stamp::Stamp;

/// Folds begin at multiples of so many pages, so that a page finds its fold in a small table.
const SLOT_PAGES: u32 = 32;

/// The folds of a window.
#[derive(Debug)]
pub(crate) struct Folds {
    folds: Vec<Fold>,
    vacant: Vec<u32>,
    /// The fold in each slot of addresses.
    slots: Vec<u32>,
    /// Folds by their key.
    known: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    /// What was folded in which state of an arena.
    habits: Habits,
    first_page: u32,
    next_page: u32,
    end_page: u32,
    gaps: Gaps,
    /// Frames that are mapped in folds, beside those that were born there.
    mapped_frames: u64,
    /// How often a fold became nobody's home.
    left: u64,
}

/// Frames in a row.
#[derive(Debug)]
struct Fold {
    first_page: u32,
    pages: u32,
    /// The frames; `NONE` for one that is gone.
    frames: Box<[u32]>,
    /// Where each begins, counted from the first page, and where the last one ends.
    starts: Box<[u32]>,
    /// Pages of the smallest frame.
    least_pages: u32,
    /// How many of the frames have their home here.
    homes: u32,
    /// The last submission that may have used it, once it is nobody's home.
    idle_since: Option<Stamp>,
    /// Which of all leavings that was.
    left: u64,
    /// Whether its frames were born here.
    is_birth: bool,
    key: u64,
}

/// A fold that has its addresses but is not mapped yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewFold {
    pub(crate) fold: u32,
    pub(crate) run: PageRun,
}

/// A fold to be unmapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdleFold {
    /// Its addresses, to be returned once it is unmapped.
    pub(crate) run: PageRun,
    /// How many frames are mapped there.
    pub(crate) frames: u64,
}

impl Folds {
    /// No folds, and addresses for them.
    pub(crate) fn new(first_page: u32, end_page: u32) -> Self {
        let first_page = first_page.next_multiple_of(SLOT_PAGES).min(end_page);
        Self {
            folds: Vec::new(),
            vacant: Vec::new(),
            slots: Vec::new(),
            known: HashMap::default(),
            habits: Habits::default(),
            first_page,
            next_page: first_page,
            end_page,
            gaps: Gaps::default(),
            mapped_frames: 0,
            left: 0,
        }
    }

    /// Addresses for so many pages, to a whole number of slots; none when they are used up.
    pub(crate) fn take_addresses(&mut self, pages: u32) -> Option<PageRun> {
        let whole = pages.checked_next_multiple_of(SLOT_PAGES)?;
        if let Some(run) = self.gaps.take(whole) {
            return Some(PageRun { pages, ..run });
        }
        let first_page = self.next_page;
        self.next_page = first_page.checked_add(whole).filter(|end| *end <= self.end_page)?;
        Some(PageRun { first_page, pages })
    }

    /// Makes addresses available again that nothing is mapped at.
    pub(crate) fn return_addresses(&mut self, run: PageRun) {
        self.gaps.add(PageRun { pages: run.pages.next_multiple_of(SLOT_PAGES), ..run });
        if let Some(last) = self.gaps.take_last_before(self.next_page) {
            self.next_page = last.first_page;
        }
    }

    /// The fold of exactly these frames in this order, if there is one.
    #[inline]
    pub(crate) fn find(&self, frames: &[u32], key: u64) -> Option<NewFold> {
        let at = *self.known.get(&key)?;
        let fold = &self.folds[at as usize];
        (*fold.frames == *frames).then_some(NewFold { fold: at, run: fold.run() })
    }

    /// Addresses for a fold of these frames with these sizes; none when they are used up.
    pub(crate) fn add(&mut self, frames: &[u32], sizes: &[u32], key: u64) -> Option<NewFold> {
        let run = self.take_addresses(sizes.iter().sum())?;
        let fold = self.put(Fold::new(run, frames, sizes, key));
        Some(NewFold { fold, run })
    }

    /// Enters a fold that was mapped, so that it can be found.
    pub(crate) fn enter(&mut self, fold: u32) {
        let Fold { key, frames, .. } = &self.folds[fold as usize];
        self.mapped_frames += frames.len() as u64;
        self.known.insert(*key, fold);
        self.write_slots(fold, fold);
    }

    /// Forgets a fold that could not be mapped.
    pub(crate) fn abandon(&mut self, new: NewFold) {
        self.return_addresses(new.run);
        self.forget(new.fold);
    }

    /// Enters frames that were born outside of a lane.
    pub(crate) fn add_births(&mut self, first_page: u32, frames: &[u32], sizes: &[u32]) -> u32 {
        let run = PageRun { first_page, pages: sizes.iter().sum() };
        let fold = Fold { is_birth: true, homes: frames.len() as u32, ..Fold::new(run, frames, sizes, 0) };
        let at = self.put(fold);
        self.write_slots(at, at);
        at
    }

    /// The first whole frames in a range of pages of one fold, with at least so many pages if there are as many.
    #[inline]
    pub(crate) fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRow> {
        let at = self.fold_number(from)?;
        let fold = &self.folds[at as usize];
        if end - from < fold.least_pages {
            return None;
        }
        let (from, end) = (from - fold.first_page, end - fold.first_page);
        let first = if from == 0 { 0 } else { fold.starts.partition_point(|start| *start < from) };
        // The last entry is where the last frame ends.
        let mut last = fold.starts.len() - 1;
        if end < fold.pages {
            last = fold.starts.partition_point(|start| *start <= end) - 1;
        }
        if first >= last {
            return None;
        }
        let start = fold.starts[first];
        let mut is_last = true;
        if fold.starts[last] - start > pages {
            let enough = first + fold.starts[first..=last].partition_point(|end| *end - start < pages);
            (last, is_last) = (enough, enough == last);
        }
        Some(FrameRow {
            first_page: fold.first_page + start,
            pages: fold.starts[last] - start,
            hint: (at, first as u32, (last - first) as u32),
            is_first: true,
            is_last,
        })
    }

    /// A row without its first frames, as far as they have no more than so many pages.
    pub(crate) fn skip_frames(&self, row: FrameRow, pages: u32) -> FrameRow {
        let (at, first, count) = row.hint;
        let starts = &self.folds[at as usize].starts[first as usize..=(first + count) as usize];
        let kept = starts.partition_point(|start| *start <= starts[0].saturating_add(pages)) - 1;
        let skipped = starts[kept] - starts[0];
        FrameRow {
            first_page: row.first_page + skipped,
            pages: row.pages - skipped,
            hint: (at, first + kept as u32, count - kept as u32),
            is_first: kept == 0,
            ..row
        }
    }

    /// Adds the frames of a row to a list.
    #[inline]
    pub(crate) fn list_frames(&self, row: FrameRow, frames: &mut Vec<u32>) {
        let (at, first, count) = row.hint;
        frames.extend_from_slice(&self.folds[at as usize].frames[first as usize..(first + count) as usize]);
    }

    /// The frames in a range of pages of one fold, in order, with their places.
    pub(crate) fn frames_at(&self, from: u32, end: u32) -> Vec<(u32, PageRun)> {
        let Some(fold) = self.fold_number(from).and_then(|at| self.folds.get(at as usize)) else {
            return Vec::new();
        };
        let places = (0..fold.frames.len()).map(|at| (fold.frames[at], fold.place(at)));
        places.filter(|(_, place)| place.end() > from && place.first_page < end).collect()
    }

    /// All frames of a fold have their home in it now.
    #[inline]
    pub(crate) fn settle(&mut self, fold: u32) {
        let fold = &mut self.folds[fold as usize];
        fold.homes = fold.frames.len() as u32;
        fold.idle_since = None;
    }

    /// The frames of a row have their home elsewhere from now on.
    #[inline]
    pub(crate) fn leave(&mut self, row: FrameRow, now: Stamp) {
        let (at, _, frames) = row.hint;
        let fold = &mut self.folds[at as usize];
        fold.homes -= frames;
        if fold.homes == 0 {
            self.left += 1;
            (fold.idle_since, fold.left) = (Some(now), self.left);
        }
    }

    /// A frame has its home where it was born again.
    pub(crate) fn come_back(&mut self, fold: u32) {
        let fold = &mut self.folds[fold as usize];
        fold.homes += 1;
        fold.idle_since = None;
    }

    /// What was folded in which state of an arena.
    #[inline]
    pub(crate) fn habits(&mut self) -> &mut Habits {
        &mut self.habits
    }

    /// A fold that is known to be there.
    #[inline]
    pub(crate) fn known(&self, fold: u32) -> NewFold {
        NewFold { fold, run: self.folds[fold as usize].run() }
    }

    /// Frames that are mapped in folds, beside those that were born there.
    pub(crate) fn mapped_frames(&self) -> u64 {
        self.mapped_frames
    }

    /// The folds that are nobody's home, the one that was left longest ago first.
    pub(crate) fn idle(&self) -> Vec<u32> {
        let mut idle: Vec<u32> =
            (0..self.folds.len() as u32).filter(|at| self.folds[*at as usize].is_idle()).collect();
        idle.sort_unstable_by_key(|at| self.folds[*at as usize].left);
        idle
    }

    /// Takes a fold out if it is nobody's home and its last use is over.
    pub(crate) fn take_idle(&mut self, at: u32, is_over: impl Fn(Stamp) -> bool) -> Option<IdleFold> {
        let fold = self.folds.get(at as usize).filter(|fold| fold.is_idle())?;
        if !fold.idle_since.is_some_and(is_over) {
            return None;
        }
        let frames = fold.frames.iter().filter(|frame| **frame != NONE).count() as u64;
        let idle = IdleFold { run: fold.run(), frames };
        self.mapped_frames -= frames;
        self.write_slots(at, NONE);
        self.forget(at);
        self.habits.clear();
        Some(idle)
    }

    /// Forgets a frame that is going away; returns where it is mapped.
    pub(crate) fn lose(&mut self, frame: u32) -> Vec<PageRun> {
        let mut places = Vec::new();
        self.habits.clear();
        for fold in &mut self.folds {
            if let Some(place) = fold.lose(frame) {
                places.push(place);
                self.mapped_frames -= u64::from(!fold.is_birth);
                self.known.remove(&fold.key);
            }
        }
        places
    }

    #[inline]
    fn fold_number(&self, page: u32) -> Option<u32> {
        let slot = page.wrapping_sub(self.first_page) / SLOT_PAGES;
        self.slots.get(slot as usize).copied().filter(|fold| *fold != NONE)
    }

    fn put(&mut self, fold: Fold) -> u32 {
        if let Some(at) = self.vacant.pop() {
            self.folds[at as usize] = fold;
            return at;
        }
        self.folds.push(fold);
        (self.folds.len() - 1) as u32
    }

    fn forget(&mut self, fold: u32) {
        let entry = &mut self.folds[fold as usize];
        if self.known.get(&entry.key) == Some(&fold) {
            self.known.remove(&entry.key);
        }
        *entry = Fold::new(PageRun { first_page: entry.first_page, pages: 0 }, &[], &[], 0);
        self.vacant.push(fold);
    }

    fn write_slots(&mut self, fold: u32, value: u32) {
        let run = self.folds[fold as usize].run();
        let first = ((run.first_page - self.first_page) / SLOT_PAGES) as usize;
        let end = first + run.pages.div_ceil(SLOT_PAGES) as usize;
        if self.slots.len() < end {
            self.slots.resize(end, NONE);
        }
        self.slots[first..end].fill(value);
    }
}

impl Fold {
    fn new(run: PageRun, frames: &[u32], sizes: &[u32], key: u64) -> Self {
        let starts = sizes.iter().scan(0, |start, pages| {
            let at = *start;
            *start += pages;
            Some(at)
        });
        Self {
            first_page: run.first_page,
            pages: run.pages,
            frames: frames.into(),
            starts: starts.chain([run.pages]).collect(),
            least_pages: sizes.iter().copied().min().unwrap_or(0),
            homes: 0,
            idle_since: None,
            left: 0,
            is_birth: false,
            key,
        }
    }

    fn run(&self) -> PageRun {
        PageRun { first_page: self.first_page, pages: self.pages }
    }

    /// Whether it could be unmapped.
    fn is_idle(&self) -> bool {
        self.homes == 0 && !self.is_birth && self.idle_since.is_some()
    }

    fn lose(&mut self, frame: u32) -> Option<PageRun> {
        let at = self.frames.iter().position(|other| *other == frame)?;
        self.frames[at] = NONE;
        Some(self.place(at))
    }

    fn place(&self, at: usize) -> PageRun {
        let (start, end) = (self.starts[at], self.starts[at + 1]);
        PageRun { first_page: self.first_page + start, pages: end - start }
    }
}

/// Keys are mixed already.
#[derive(Default, Debug)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::StreamKey;

    /// A fold of one frame, found by its key, that is at home.
    fn settled(folds: &mut Folds, frame: u32) -> FrameRow {
        let NewFold { fold, run } = folds.add(&[frame], &[4], u64::from(frame)).unwrap();
        folds.enter(fold);
        folds.settle(fold);
        folds.whole_frames(run.first_page, run.end(), run.pages).unwrap()
    }

    #[test]
    fn what_was_left_longest_ago_comes_first_and_is_taken_once_its_use_is_over() {
        let mut folds = Folds::new(0, 1 << 20);
        let [first, second, third] = [7, 8, 9].map(|frame| settled(&mut folds, frame));
        let stamp = |number| Stamp { stream: StreamKey::new(0), number };
        assert!(folds.idle().is_empty(), "all are homes");
        for (row, now) in [(third, 5), (first, 6), (second, 7)] {
            folds.leave(row, stamp(now));
        }
        assert_eq!(folds.idle(), [third, first, second].map(|row| row.hint.0));
        // One that was used again was left again since.
        folds.settle(third.hint.0);
        folds.leave(third, stamp(8));
        assert_eq!(folds.idle(), [first, second, third].map(|row| row.hint.0));

        let is_over = |over: Stamp| over.number < 7;
        assert_eq!(folds.take_idle(second.hint.0, is_over), None, "its last use is not over");
        let taken = folds.take_idle(first.hint.0, is_over);
        let run = PageRun { first_page: first.first_page, pages: 4 };
        assert_eq!(taken, Some(IdleFold { run, frames: 1 }));
        assert_eq!(folds.take_idle(first.hint.0, is_over), None, "it is gone");
        assert_eq!(folds.idle(), [second, third].map(|row| row.hint.0));
        assert_eq!(folds.find(&[7], 7), None);
        assert!(folds.find(&[8], 8).is_some());
    }
}
