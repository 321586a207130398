//! Who holds how much: counts by tag, kept by each thread for itself.
//!
//! A thread adds to its own counters and to nobody else's, so counting costs a few plain instructions and no shared
//! cache line. Sums are made by whoever asks. The one thing that cannot be summed afterwards is a peak: each thread
//! therefore publishes how its share of the live bytes changed once that is more than [`PUBLISHED_BYTES`] and more than
//! [a small part](PUBLISHED_PART) of all that is live, with the highest point it passed. A peak is exact for one thread and
//! off by at most that much for each further one. Publishing is a locked instruction, which waits until all that was
//! written before has reached the cache; blocks of a few MiB would pay for it each time if the bound did not grow with
//! what is live.

use std::sync::atomic::{AtomicI64, Ordering};

use kiln_sync::{ChunkedTable, OwnedCounter};

use crate::tag::AllocTag;

/// A thread publishes its share of the live bytes when it has changed by more than this ...
const PUBLISHED_BYTES: i64 = 1 << 20;
/// ... and by more than this part of what is live.
const PUBLISHED_PART: i64 = 256;
/// Tags whose counters lie beside the others; the first ones a program uses.
const NEAR_TAGS: usize = 8;

/// What threads have published. Their pages are kept by whoever keeps something for each thread anyway.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    live_bytes: AtomicI64,
    peak_bytes: AtomicI64,
}

/// A thread's part of a ledger.
#[derive(Debug)]
pub(crate) struct Page {
    near: [Entry; NEAR_TAGS],
    far: ChunkedTable<Entry>,
    /// How the live bytes changed since it was published, and the highest that was; as two's complement.
    change: OwnedCounter,
    highest: OwnedCounter,
    /// How much it may change before it is published again.
    unpublished_most: OwnedCounter,
}

/// What a thread did for one tag.
#[derive(Debug, Default)]
struct Entry {
    allocated_bytes: OwnedCounter,
    allocated_blocks: OwnedCounter,
    freed_bytes: OwnedCounter,
    freed_blocks: OwnedCounter,
}

/// What was done for a tag, or for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
}

impl Counts {
    /// Bytes that are live; none if more was freed than allocated, as in a scope that frees what was there before.
    pub fn live_bytes(&self) -> u64 {
        self.allocated_bytes.saturating_sub(self.freed_bytes)
    }

    /// Blocks that are live; none if more were freed than allocated.
    pub fn live_blocks(&self) -> u64 {
        self.allocations.saturating_sub(self.frees)
    }

    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            allocated_bytes: self.allocated_bytes.wrapping_sub(earlier.allocated_bytes),
            frees: self.frees.wrapping_sub(earlier.frees),
            freed_bytes: self.freed_bytes.wrapping_sub(earlier.freed_bytes),
        }
    }

    /// The sum of entries, which may be written meanwhile. Frees are read before allocations: a block that is seen to be
    /// freed was allocated before, by whatever thread, so what is live is never less than nothing.
    fn sum<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Self {
        let mut counts = Self::default();
        for entry in entries.clone() {
            counts.frees = counts.frees.wrapping_add(entry.freed_blocks.get());
            counts.freed_bytes = counts.freed_bytes.wrapping_add(entry.freed_bytes.get());
        }
        for entry in entries {
            counts.allocations = counts.allocations.wrapping_add(entry.allocated_blocks.get());
            counts.allocated_bytes = counts.allocated_bytes.wrapping_add(entry.allocated_bytes.get());
        }
        counts
    }
}

impl Ledger {
    #[inline]
    pub(crate) fn note_allocated(&self, page: &Page, tag: AllocTag, bytes: u64) {
        let entry = page.entry(tag);
        entry.allocated_bytes.add(bytes);
        entry.allocated_blocks.add(1);
        let change = page.change.add(bytes) as i64;
        if change > page.highest.get() as i64 {
            page.highest.set(change as u64);
            if change > page.unpublished_most.get() as i64 {
                self.publish(page);
            }
        }
    }

    #[inline]
    pub(crate) fn note_freed(&self, page: &Page, tag: AllocTag, bytes: u64) {
        let entry = page.entry(tag);
        entry.freed_bytes.add(bytes);
        entry.freed_blocks.add(1);
        if (page.change.add(bytes.wrapping_neg()) as i64) < -(page.unpublished_most.get() as i64) {
            self.publish(page);
        }
    }

    /// The most that was live at once.
    pub(crate) fn peak_bytes<'a>(&self, pages: impl Iterator<Item = &'a Page> + Clone) -> u64 {
        let live = self.live_bytes.load(Ordering::Relaxed);
        let change = |page: &Page| page.change.get() as i64;
        let all: i64 = pages.clone().map(change).sum();
        let unpublished = pages.map(|page| live + all - change(page) + page.highest.get() as i64);
        let highest = unpublished.max().unwrap_or(0).max(self.peak_bytes.load(Ordering::Relaxed));
        u64::try_from(highest).unwrap_or(0)
    }

    #[cold]
    fn publish(&self, page: &Page) {
        let (change, highest) = (page.change.get() as i64, page.highest.get() as i64);
        page.change.set(0);
        page.highest.set(0);
        let before = self.live_bytes.fetch_add(change, Ordering::Relaxed);
        page.unpublished_most.set(PUBLISHED_BYTES.max((before + change) / PUBLISHED_PART) as u64);
        // A locked instruction less where there is no new peak, which is nearly always.
        if before + highest > self.peak_bytes.load(Ordering::Relaxed) {
            self.peak_bytes.fetch_max(before + highest, Ordering::Relaxed);
        }
    }
}

/// What was done for all tags together.
pub(crate) fn total<'a>(pages: impl Iterator<Item = &'a Page> + Clone) -> Counts {
    Counts::sum(pages.flat_map(|page| page.near.iter().chain(page.far.iter())))
}

/// What was done for one tag.
pub(crate) fn count<'a>(pages: impl Iterator<Item = &'a Page> + Clone, tag: AllocTag) -> Counts {
    Counts::sum(pages.filter_map(|page| page.known_entry(tag)))
}

/// What was done for each tag for which something was done.
pub(crate) fn by_tag<'a>(pages: impl Iterator<Item = &'a Page> + Clone) -> Vec<(AllocTag, Counts)> {
    let tags = (0..).map_while(AllocTag::from_number);
    tags.map(|tag| (tag, count(pages.clone(), tag))).filter(|(_, counts)| counts.allocations > 0).collect()
}

/// The tags that hold most, with their live bytes; those that hold nothing are left out.
pub(crate) fn top_tags<'a>(
    pages: impl Iterator<Item = &'a Page> + Clone,
    most: usize,
) -> Vec<(AllocTag, u64)> {
    let tags = by_tag(pages).into_iter().map(|(tag, counts)| (tag, counts.live_bytes()));
    let mut tags: Vec<(AllocTag, u64)> = tags.filter(|(_, bytes)| *bytes > 0).collect();
    tags.sort_by_key(|(tag, bytes)| (std::cmp::Reverse(*bytes), *tag));
    tags.truncate(most);
    tags
}

impl Page {
    pub(crate) fn new() -> Self {
        let unpublished_most = OwnedCounter::default();
        unpublished_most.set(PUBLISHED_BYTES as u64);
        Self {
            near: std::array::from_fn(|_| Entry::default()),
            far: ChunkedTable::new(),
            change: OwnedCounter::default(),
            highest: OwnedCounter::default(),
            unpublished_most,
        }
    }

    #[inline]
    fn entry(&self, tag: AllocTag) -> &Entry {
        match self.near.get(tag.number()) {
            Some(entry) => entry,
            None => self.far.get_or_make(tag.number() as u32, Entry::default),
        }
    }

    fn known_entry(&self, tag: AllocTag) -> Option<&Entry> {
        self.near.get(tag.number()).or_else(|| self.far.get(tag.number() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_one_thread_is_exact() {
        let (ledger, page) = (Ledger::default(), Page::new());
        let pages = || std::iter::once(&page);
        let mut random = crate::heap::lcg(9);
        let (mut live, mut peak, mut blocks) = (0_u64, 0, Vec::new());
        let turns = if cfg!(miri) { 200 } else { 5000 };
        for _ in 0..turns {
            if random().is_multiple_of(2) || blocks.is_empty() {
                let bytes = random() % (1 << (random() % 24));
                ledger.note_allocated(&page, AllocTag::default(), bytes);
                live += bytes;
                blocks.push(bytes);
            } else {
                let bytes = blocks.swap_remove(random() as usize % blocks.len());
                ledger.note_freed(&page, AllocTag::default(), bytes);
                live -= bytes;
            }
            peak = peak.max(live);
            assert_eq!(total(pages()).live_bytes(), live);
        }
        assert_eq!(ledger.peak_bytes(pages()), peak);
        assert_eq!(total(pages()).live_blocks(), blocks.len() as u64);
    }

    #[test]
    fn the_peak_of_several_threads_is_off_by_a_small_part_for_each() {
        const THREADS: usize = 3;
        let (ledger, pages) = (Ledger::default(), std::array::from_fn::<_, THREADS, _>(|_| Page::new()));
        let mut random = crate::heap::lcg(11);
        let (mut live, mut peak, mut blocks) = (0_u64, 0, Vec::new());
        let turns = if cfg!(miri) { 200 } else { 20_000 };
        for turn in 0..turns {
            let page = &pages[random() as usize % THREADS];
            if random() % turns > turn || blocks.is_empty() {
                let bytes = random() % (64 << 20);
                ledger.note_allocated(page, AllocTag::default(), bytes);
                live += bytes;
                blocks.push(bytes);
            } else {
                let bytes = blocks.swap_remove(random() as usize % blocks.len());
                ledger.note_freed(page, AllocTag::default(), bytes);
                live -= bytes;
            }
            peak = peak.max(live);
        }
        let most = THREADS as u64 * (peak / PUBLISHED_PART as u64).max(PUBLISHED_BYTES as u64);
        assert!(ledger.peak_bytes(pages.iter()).abs_diff(peak) <= most);
    }

    #[test]
    fn tags_are_counted_apart_and_threads_together() {
        let ledger = Ledger::default();
        let pages: Vec<Page> = (0..4).map(|_| Page::new()).collect();
        let tags: Vec<AllocTag> =
            (0..20).map(|at| AllocTag::new(&format!("ledger test {at}")).unwrap()).collect();
        std::thread::scope(|scope| {
            for page in &pages {
                scope.spawn(|| {
                    for (at, tag) in tags.iter().enumerate() {
                        ledger.note_allocated(page, *tag, at as u64 * 100);
                    }
                });
            }
        });
        for (at, tag) in tags.iter().enumerate() {
            assert_eq!(count(pages.iter(), *tag).live_bytes(), at as u64 * 400);
        }
        assert_eq!(top_tags(pages.iter(), 2), [(tags[19], 7600), (tags[18], 7200)]);
        assert_eq!(ledger.peak_bytes(pages.iter()), 76_000);
    }
}
