//! Contiguous remaps: frames that are mapped a second time, one after the other (see [`physical_pages`](super::physical_pages)).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::free_runs::FreeRuns;
use super::physical_page_selection::FrameRun;
use super::physical_pages::{NONE, PageRun};
use super::remap_cache::RemapCache;
use crate::last_use::Stamp;
use crate::try_reserve::{HostOutOfMemory, TryGrow};

/// Remaps begin at multiples of this many pages, so that the remap of a page is found in a small table.
const SLOT_PAGES: u32 = 32;

/// The remaps of a window.
#[derive(Debug)]
pub(crate) struct RemapTable {
    remaps: Vec<ContiguousRemap>,
    vacant: Vec<u32>,
    /// The remap in each slot of addresses.
    slots: Vec<u32>,
    /// Remaps by their key.
    known: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    /// Remaps by the free pieces they were made of.
    remap_cache: RemapCache,
    first_page: u32,
    next_page: u32,
    end_page: u32,
    free_runs: FreeRuns,
    /// Frames that are mapped in remaps, without those whose original place is there.
    mapped_frames: u64,
    /// How often a remap became unused: the current place of no frame.
    left: u64,
}

/// Frames that are mapped one after the other.
#[derive(Debug)]
struct ContiguousRemap {
    first_page: u32,
    pages: u32,
    /// The frames; `NONE` for one that is gone.
    frames: Box<[u32]>,
    /// Where each begins, counted from the first page, and where the last one ends.
    starts: Box<[u32]>,
    /// Pages of the smallest frame.
    least_pages: u32,
    /// How many of the frames have their current place here.
    homes: u32,
    /// The last submission that may have used it, while it is unused.
    idle_since: Option<Stamp>,
    /// The value of the table's count when it became unused.
    left: u64,
    /// Whether this is the original place of its frames.
    is_original: bool,
    key: u64,
}

/// A remap and its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RemapRef {
    pub(crate) remap: u32,
    pub(crate) run: PageRun,
}

/// A remap to be unmapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdleRemap {
    /// Its addresses, to be returned once it is unmapped.
    pub(crate) run: PageRun,
    /// How many frames are mapped there.
    pub(crate) frames: u64,
}

impl RemapTable {
    /// No remaps, and addresses for them.
    pub(crate) fn new(first_page: u32, end_page: u32) -> Self {
        let first_page = first_page.next_multiple_of(SLOT_PAGES).min(end_page);
        Self {
            remaps: Vec::new(),
            vacant: Vec::new(),
            slots: Vec::new(),
            known: HashMap::default(),
            remap_cache: RemapCache::default(),
            first_page,
            next_page: first_page,
            end_page,
            free_runs: FreeRuns::default(),
            mapped_frames: 0,
            left: 0,
        }
    }

    /// Makes room in the tables for one more remap of `pages` pages.
    pub(crate) fn try_grow(&mut self, pages: u32) -> Result<(), HostOutOfMemory> {
        self.remaps.try_grow(1)?;
        self.known.try_grow(1)?;
        let end = (self.next_page.saturating_add(pages) - self.first_page).div_ceil(SLOT_PAGES) as usize;
        self.slots.try_grow(end.saturating_sub(self.slots.len()))
    }

    /// Addresses for so many pages, to a whole number of slots; none when they are used up.
    pub(crate) fn take_addresses(&mut self, pages: u32) -> Option<PageRun> {
        let whole = pages.checked_next_multiple_of(SLOT_PAGES)?;
        if let Some(run) = self.free_runs.take(whole) {
            return Some(PageRun { pages, ..run });
        }
        let first_page = self.next_page;
        self.next_page = first_page.checked_add(whole).filter(|end| *end <= self.end_page)?;
        Some(PageRun { first_page, pages })
    }

    /// Makes addresses available again that nothing is mapped at.
    pub(crate) fn return_addresses(&mut self, run: PageRun) {
        self.free_runs.add(PageRun { pages: run.pages.next_multiple_of(SLOT_PAGES), ..run });
        if let Some(last) = self.free_runs.take_last_before(self.next_page) {
            self.next_page = last.first_page;
        }
    }

    /// The remap of exactly these frames in this order, if there is one.
    #[inline]
    pub(crate) fn find(&self, frames: &[u32], key: u64) -> Option<RemapRef> {
        let at = *self.known.get(&key)?;
        let remap = &self.remaps[at as usize];
        (*remap.frames == *frames).then_some(RemapRef { remap: at, run: remap.run() })
    }

    /// Addresses for a remap of these frames with these sizes; none when they are used up.
    pub(crate) fn add(&mut self, frames: &[u32], sizes: &[u32], key: u64) -> Option<RemapRef> {
        let run = self.take_addresses(sizes.iter().sum())?;
        let remap = self.put(ContiguousRemap::new(run, frames, sizes, key));
        Some(RemapRef { remap, run })
    }

    /// Notes that a remap was mapped, so that it is found from now on.
    pub(crate) fn enter(&mut self, remap: u32) {
        let ContiguousRemap { key, frames, .. } = &self.remaps[remap as usize];
        self.mapped_frames += frames.len() as u64;
        self.known.insert(*key, remap);
        self.write_slots(remap, remap);
    }

    /// Forgets a remap that could not be mapped.
    pub(crate) fn discard(&mut self, new: RemapRef) {
        self.return_addresses(new.run);
        self.forget(new.remap);
    }

    /// Enters frames whose original place is outside of the regions.
    pub(crate) fn insert_original(&mut self, first_page: u32, frames: &[u32], sizes: &[u32]) -> u32 {
        let run = PageRun { first_page, pages: sizes.iter().sum() };
        let remap = ContiguousRemap {
            is_original: true,
            homes: frames.len() as u32,
            ..ContiguousRemap::new(run, frames, sizes, 0)
        };
        let at = self.put(remap);
        self.write_slots(at, at);
        at
    }

    /// The first whole frames in a range of pages of one remap, with at least so many pages if there are as many.
    #[inline]
    pub(crate) fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRun> {
        let at = self.remap_number(from)?;
        let remap = &self.remaps[at as usize];
        if end - from < remap.least_pages {
            return None;
        }
        let (from, end) = (from - remap.first_page, end - remap.first_page);
        let first = if from == 0 { 0 } else { remap.starts.partition_point(|start| *start < from) };
        // The last entry is where the last frame ends.
        let mut last = remap.starts.len() - 1;
        if end < remap.pages {
            last = remap.starts.partition_point(|start| *start <= end) - 1;
        }
        if first >= last {
            return None;
        }
        let start = remap.starts[first];
        let mut is_last = true;
        if remap.starts[last] - start > pages {
            let enough = first + remap.starts[first..=last].partition_point(|end| *end - start < pages);
            (last, is_last) = (enough, enough == last);
        }
        Some(FrameRun {
            first_page: remap.first_page + start,
            pages: remap.starts[last] - start,
            hint: (at, first as u32, (last - first) as u32),
            is_first: true,
            is_last,
        })
    }

    /// A run without its first frames, as long as these have no more than `pages` pages.
    pub(crate) fn skip_frames(&self, row: FrameRun, pages: u32) -> FrameRun {
        let (at, first, count) = row.hint;
        let starts = &self.remaps[at as usize].starts[first as usize..=(first + count) as usize];
        let kept = starts.partition_point(|start| *start <= starts[0].saturating_add(pages)) - 1;
        let skipped = starts[kept] - starts[0];
        FrameRun {
            first_page: row.first_page + skipped,
            pages: row.pages - skipped,
            hint: (at, first + kept as u32, count - kept as u32),
            is_first: kept == 0,
            ..row
        }
    }

    /// Adds the frames of a run to a list.
    #[inline]
    pub(crate) fn list_frames(&self, row: FrameRun, frames: &mut Vec<u32>) {
        let (at, first, count) = row.hint;
        frames.extend_from_slice(&self.remaps[at as usize].frames[first as usize..(first + count) as usize]);
    }

    /// The frames in a range of pages of one remap, in order, with their places.
    pub(crate) fn frames_at(&self, from: u32, end: u32) -> Vec<(u32, PageRun)> {
        let Some(remap) = self.remap_number(from).and_then(|at| self.remaps.get(at as usize)) else {
            return Vec::new();
        };
        let places = (0..remap.frames.len()).map(|at| (remap.frames[at], remap.place(at)));
        places.filter(|(_, place)| place.end() > from && place.first_page < end).collect()
    }

    /// Makes a remap the current place of all its frames.
    #[inline]
    pub(crate) fn settle(&mut self, remap: u32) {
        let remap = &mut self.remaps[remap as usize];
        remap.homes = remap.frames.len() as u32;
        remap.idle_since = None;
    }

    /// Notes that the frames of a run have another current place.
    #[inline]
    pub(crate) fn leave(&mut self, row: FrameRun, now: Stamp) {
        let (at, _, frames) = row.hint;
        let remap = &mut self.remaps[at as usize];
        remap.homes -= frames;
        if remap.homes == 0 {
            self.left += 1;
            (remap.idle_since, remap.left) = (Some(now), self.left);
        }
    }

    /// Notes that one more frame has its current place here.
    pub(crate) fn return_frame(&mut self, remap: u32) {
        let remap = &mut self.remaps[remap as usize];
        remap.homes += 1;
        remap.idle_since = None;
    }

    /// Remaps by the free pieces they were made of.
    #[inline]
    pub(crate) fn remap_cache(&mut self) -> &mut RemapCache {
        &mut self.remap_cache
    }

    /// A remap by its number.
    #[inline]
    pub(crate) fn known(&self, remap: u32) -> RemapRef {
        RemapRef { remap, run: self.remaps[remap as usize].run() }
    }

    /// Frames that are mapped in remaps, without those whose original place is there.
    pub(crate) fn mapped_frames(&self) -> u64 {
        self.mapped_frames
    }

    /// The unused remaps, the one that became unused longest ago first.
    pub(crate) fn idle(&self) -> Vec<u32> {
        let mut idle: Vec<u32> =
            (0..self.remaps.len() as u32).filter(|at| self.remaps[*at as usize].is_idle()).collect();
        idle.sort_unstable_by_key(|at| self.remaps[*at as usize].left);
        idle
    }

    /// Removes a remap if it is unused and its last use is over.
    pub(crate) fn take_idle(&mut self, at: u32, is_over: impl Fn(Stamp) -> bool) -> Option<IdleRemap> {
        let remap = self.remaps.get(at as usize).filter(|remap| remap.is_idle())?;
        if !remap.idle_since.is_some_and(is_over) {
            return None;
        }
        let frames = remap.frames.iter().filter(|frame| **frame != NONE).count() as u64;
        let idle = IdleRemap { run: remap.run(), frames };
        self.mapped_frames -= frames;
        self.write_slots(at, NONE);
        self.forget(at);
        self.remap_cache.clear();
        Some(idle)
    }

    /// Removes a frame from all remaps; returns where it is mapped.
    pub(crate) fn remove_frame(&mut self, frame: u32) -> Vec<PageRun> {
        let mut places = Vec::new();
        self.remap_cache.clear();
        for remap in &mut self.remaps {
            if let Some(place) = remap.remove_frame(frame) {
                places.push(place);
                self.mapped_frames -= u64::from(!remap.is_original);
                self.known.remove(&remap.key);
            }
        }
        places
    }

    #[inline]
    fn remap_number(&self, page: u32) -> Option<u32> {
        let slot = page.wrapping_sub(self.first_page) / SLOT_PAGES;
        self.slots.get(slot as usize).copied().filter(|remap| *remap != NONE)
    }

    fn put(&mut self, remap: ContiguousRemap) -> u32 {
        if let Some(at) = self.vacant.pop() {
            self.remaps[at as usize] = remap;
            return at;
        }
        self.remaps.push(remap);
        (self.remaps.len() - 1) as u32
    }

    fn forget(&mut self, remap: u32) {
        let entry = &mut self.remaps[remap as usize];
        if self.known.get(&entry.key) == Some(&remap) {
            self.known.remove(&entry.key);
        }
        *entry = ContiguousRemap::new(PageRun { first_page: entry.first_page, pages: 0 }, &[], &[], 0);
        self.vacant.push(remap);
    }

    fn write_slots(&mut self, remap: u32, value: u32) {
        let run = self.remaps[remap as usize].run();
        let first = ((run.first_page - self.first_page) / SLOT_PAGES) as usize;
        let end = first + run.pages.div_ceil(SLOT_PAGES) as usize;
        if self.slots.len() < end {
            self.slots.resize(end, NONE);
        }
        self.slots[first..end].fill(value);
    }
}

impl ContiguousRemap {
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
            is_original: false,
            key,
        }
    }

    fn run(&self) -> PageRun {
        PageRun { first_page: self.first_page, pages: self.pages }
    }

    /// Whether it could be unmapped.
    fn is_idle(&self) -> bool {
        self.homes == 0 && !self.is_original && self.idle_since.is_some()
    }

    fn remove_frame(&mut self, frame: u32) -> Option<PageRun> {
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
    use crate::last_use::StreamKey;

    /// A remap of one frame, found by its key, that is in use.
    fn settled(remaps: &mut RemapTable, frame: u32) -> FrameRun {
        let RemapRef { remap, run } = remaps.add(&[frame], &[4], u64::from(frame)).unwrap();
        remaps.enter(remap);
        remaps.settle(remap);
        remaps.whole_frames(run.first_page, run.end(), run.pages).unwrap()
    }

    #[test]
    fn what_was_left_longest_ago_comes_first_and_is_taken_once_its_use_is_over() {
        let mut remaps = RemapTable::new(0, 1 << 20);
        let [first, second, third] = [7, 8, 9].map(|frame| settled(&mut remaps, frame));
        let stamp = |number| Stamp { stream: StreamKey::default(), number };
        assert!(remaps.idle().is_empty(), "all are in use");
        for (row, now) in [(third, 5), (first, 6), (second, 7)] {
            remaps.leave(row, stamp(now));
        }
        assert_eq!(remaps.idle(), [third, first, second].map(|row| row.hint.0));
        // One that was used again became unused again later.
        remaps.settle(third.hint.0);
        remaps.leave(third, stamp(8));
        assert_eq!(remaps.idle(), [first, second, third].map(|row| row.hint.0));

        let is_over = |over: Stamp| over.number < 7;
        assert_eq!(remaps.take_idle(second.hint.0, is_over), None, "its last use is not over");
        let taken = remaps.take_idle(first.hint.0, is_over);
        let run = PageRun { first_page: first.first_page, pages: 4 };
        assert_eq!(taken, Some(IdleRemap { run, frames: 1 }));
        assert_eq!(remaps.take_idle(first.hint.0, is_over), None, "it is gone");
        assert_eq!(remaps.idle(), [second, third].map(|row| row.hint.0));
        assert_eq!(remaps.find(&[7], 7), None);
        assert!(remaps.find(&[8], 8).is_some());
    }
}
