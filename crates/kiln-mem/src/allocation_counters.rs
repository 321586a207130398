//! How much is allocated, by tag: each thread counts for itself.
//!
//! A thread adds to its own counters only, so counting costs a few plain instructions and no shared
//! cache line. Sums are made when they are read. The one thing that cannot be summed afterwards is a peak: each thread
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

/// What threads have published. Their counters are kept by the user, which has something for each thread anyway.
#[derive(Debug, Default)]
pub(crate) struct AllocationCounters {
    live_bytes: AtomicI64,
    peak_bytes: AtomicI64,
}

/// The counters of one thread.
#[derive(Debug)]
pub(crate) struct ThreadCounters {
    near: [TagCounters; NEAR_TAGS],
    far: ChunkedTable<TagCounters>,
    /// How the live bytes changed since it was published, and the highest that was; as two's complement.
    change: OwnedCounter,
    highest: OwnedCounter,
    /// How much it may change before it is published again.
    unpublished_most: OwnedCounter,
}

/// What a thread did for one tag.
#[derive(Debug, Default)]
struct TagCounters {
    allocated_bytes: OwnedCounter,
    allocated_blocks: OwnedCounter,
    freed_bytes: OwnedCounter,
    freed_blocks: OwnedCounter,
}

/// A count that will be made.
#[derive(Debug)]
pub(crate) struct PlannedCount<'a> {
    thread: &'a ThreadCounters,
    entry: &'a TagCounters,
    /// How the live bytes will have changed since it was published.
    change: u64,
}

/// What was done for a tag, or for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocationCounts {
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
}

impl AllocationCounts {
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
    fn sum<'a>(entries: impl Iterator<Item = &'a TagCounters> + Clone) -> Self {
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

impl AllocationCounters {
    #[inline]
    pub(crate) fn note_allocated(&self, thread: &ThreadCounters, tag: AllocTag, bytes: u64) {
        let entry = thread.entry(tag);
        entry.allocated_bytes.add(bytes);
        entry.allocated_blocks.add(1);
        let change = thread.change.add(bytes) as i64;
        if change > thread.highest.get() as i64 {
            thread.highest.set(change as u64);
            if change > thread.unpublished_most.get() as i64 {
                self.publish(thread);
            }
        }
    }

    #[inline]
    pub(crate) fn note_freed(&self, thread: &ThreadCounters, tag: AllocTag, bytes: u64) {
        let entry = thread.entry(tag);
        entry.freed_bytes.add(bytes);
        entry.freed_blocks.add(1);
        if (thread.change.add(bytes.wrapping_neg()) as i64) < -(thread.unpublished_most.get() as i64) {
            self.publish(thread);
        }
    }

    /// What [`note_allocated`](Self::note_allocated) would do, if that concerns nothing but counters that lie at hand; no call is made for it.
    #[inline(always)]
    pub(crate) fn plan_allocated<'a>(
        thread: &'a ThreadCounters,
        tag: AllocTag,
        bytes: u64,
    ) -> Option<PlannedCount<'a>> {
        let entry = thread.near.get(tag.number())?;
        let change = thread.change.get().wrapping_add(bytes);
        (change as i64 <= thread.unpublished_most.get() as i64).then_some(PlannedCount {
            thread,
            entry,
            change,
        })
    }

    /// The same for [`note_freed`](Self::note_freed).
    #[inline(always)]
    pub(crate) fn plan_freed<'a>(
        thread: &'a ThreadCounters,
        tag: AllocTag,
        bytes: u64,
    ) -> Option<PlannedCount<'a>> {
        let entry = thread.near.get(tag.number())?;
        let change = thread.change.get().wrapping_sub(bytes);
        (change as i64 >= -(thread.unpublished_most.get() as i64)).then_some(PlannedCount {
            thread,
            entry,
            change,
        })
    }

    /// The most that was live at once.
    pub(crate) fn peak_bytes<'a>(&self, threads: impl Iterator<Item = &'a ThreadCounters> + Clone) -> u64 {
        let live = self.live_bytes.load(Ordering::Relaxed);
        let change = |thread: &ThreadCounters| thread.change.get() as i64;
        let all: i64 = threads.clone().map(change).sum();
        let unpublished = threads.map(|thread| live + all - change(thread) + thread.highest.get() as i64);
        let highest = unpublished.max().unwrap_or(0).max(self.peak_bytes.load(Ordering::Relaxed));
        u64::try_from(highest).unwrap_or(0)
    }

    #[cold]
    fn publish(&self, thread: &ThreadCounters) {
        let (change, highest) = (thread.change.get() as i64, thread.highest.get() as i64);
        thread.change.set(0);
        thread.highest.set(0);
        let before = self.live_bytes.fetch_add(change, Ordering::Relaxed);
        thread.unpublished_most.set(PUBLISHED_BYTES.max((before + change) / PUBLISHED_PART) as u64);
        // A locked instruction less where there is no new peak, which is nearly always.
        if before + highest > self.peak_bytes.load(Ordering::Relaxed) {
            self.peak_bytes.fetch_max(before + highest, Ordering::Relaxed);
        }
    }
}

impl PlannedCount<'_> {
    /// Counts an allocation.
    #[inline(always)]
    pub(crate) fn note_allocated(self, bytes: u64) {
        self.entry.allocated_bytes.add(bytes);
        self.entry.allocated_blocks.add(1);
        self.thread.change.set(self.change);
        if self.change as i64 > self.thread.highest.get() as i64 {
            self.thread.highest.set(self.change);
        }
    }

    /// Counts a free.
    #[inline(always)]
    pub(crate) fn note_freed(self, bytes: u64) {
        self.entry.freed_bytes.add(bytes);
        self.entry.freed_blocks.add(1);
        self.thread.change.set(self.change);
    }
}

/// What was done for all tags together.
pub(crate) fn total<'a>(threads: impl Iterator<Item = &'a ThreadCounters> + Clone) -> AllocationCounts {
    AllocationCounts::sum(threads.flat_map(|thread| thread.near.iter().chain(thread.far.iter())))
}

/// What was done for one tag.
pub(crate) fn count<'a>(
    threads: impl Iterator<Item = &'a ThreadCounters> + Clone,
    tag: AllocTag,
) -> AllocationCounts {
    AllocationCounts::sum(threads.filter_map(|thread| thread.known_entry(tag)))
}

/// What was done for each tag for which something was done.
pub(crate) fn by_tag<'a>(
    threads: impl Iterator<Item = &'a ThreadCounters> + Clone,
) -> Vec<(AllocTag, AllocationCounts)> {
    let tags = (0..).map_while(AllocTag::from_number);
    tags.map(|tag| (tag, count(threads.clone(), tag))).filter(|(_, counts)| counts.allocations > 0).collect()
}

/// The tags that hold most, with their live bytes; those that hold nothing are left out.
pub(crate) fn top_tags<'a>(
    threads: impl Iterator<Item = &'a ThreadCounters> + Clone,
    most: usize,
) -> Vec<(AllocTag, u64)> {
    let tags = by_tag(threads).into_iter().map(|(tag, counts)| (tag, counts.live_bytes()));
    let mut tags: Vec<(AllocTag, u64)> = tags.filter(|(_, bytes)| *bytes > 0).collect();
    tags.sort_by_key(|(tag, bytes)| (std::cmp::Reverse(*bytes), *tag));
    tags.truncate(most);
    tags
}

impl ThreadCounters {
    pub(crate) fn new() -> Self {
        let unpublished_most = OwnedCounter::default();
        unpublished_most.set(PUBLISHED_BYTES as u64);
        Self {
            near: std::array::from_fn(|_| TagCounters::default()),
            far: ChunkedTable::new(),
            change: OwnedCounter::default(),
            highest: OwnedCounter::default(),
            unpublished_most,
        }
    }

    #[inline]
    fn entry(&self, tag: AllocTag) -> &TagCounters {
        match self.near.get(tag.number()) {
            Some(entry) => entry,
            None => self.far.get_or_make(tag.number() as u32, TagCounters::default),
        }
    }

    fn known_entry(&self, tag: AllocTag) -> Option<&TagCounters> {
        self.near.get(tag.number()).or_else(|| self.far.get(tag.number() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_one_thread_is_exact() {
        let (counters, thread) = (AllocationCounters::default(), ThreadCounters::new());
        let threads = || std::iter::once(&thread);
        let mut random = crate::heap::lcg(9);
        let (mut live, mut peak, mut blocks) = (0_u64, 0, Vec::new());
        let turns = if cfg!(miri) { 200 } else { 5000 };
        for _ in 0..turns {
            if random().is_multiple_of(2) || blocks.is_empty() {
                let bytes = random() % (1 << (random() % 24));
                counters.note_allocated(&thread, AllocTag::default(), bytes);
                live += bytes;
                blocks.push(bytes);
            } else {
                let bytes = blocks.swap_remove(random() as usize % blocks.len());
                counters.note_freed(&thread, AllocTag::default(), bytes);
                live -= bytes;
            }
            peak = peak.max(live);
            assert_eq!(total(threads()).live_bytes(), live);
        }
        assert_eq!(counters.peak_bytes(threads()), peak);
        assert_eq!(total(threads()).live_blocks(), blocks.len() as u64);
    }

    #[test]
    fn the_peak_of_several_threads_is_off_by_a_small_part_for_each() {
        const THREADS: usize = 3;
        let (counters, threads) =
            (AllocationCounters::default(), std::array::from_fn::<_, THREADS, _>(|_| ThreadCounters::new()));
        let mut random = crate::heap::lcg(11);
        let (mut live, mut peak, mut blocks) = (0_u64, 0, Vec::new());
        let turns = if cfg!(miri) { 200 } else { 20_000 };
        for turn in 0..turns {
            let thread = &threads[random() as usize % THREADS];
            if random() % turns > turn || blocks.is_empty() {
                let bytes = random() % (64 << 20);
                counters.note_allocated(thread, AllocTag::default(), bytes);
                live += bytes;
                blocks.push(bytes);
            } else {
                let bytes = blocks.swap_remove(random() as usize % blocks.len());
                counters.note_freed(thread, AllocTag::default(), bytes);
                live -= bytes;
            }
            peak = peak.max(live);
        }
        let most = THREADS as u64 * (peak / PUBLISHED_PART as u64).max(PUBLISHED_BYTES as u64);
        assert!(counters.peak_bytes(threads.iter()).abs_diff(peak) <= most);
    }

    #[test]
    fn tags_are_counted_apart_and_threads_together() {
        let counters = AllocationCounters::default();
        let threads: Vec<ThreadCounters> = (0..4).map(|_| ThreadCounters::new()).collect();
        let tags: Vec<AllocTag> =
            (0..20).map(|at| AllocTag::new(&format!("counters test {at}")).unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in &threads {
                scope.spawn(|| {
                    for (at, tag) in tags.iter().enumerate() {
                        counters.note_allocated(thread, *tag, at as u64 * 100);
                    }
                });
            }
        });
        for (at, tag) in tags.iter().enumerate() {
            assert_eq!(count(threads.iter(), *tag).live_bytes(), at as u64 * 400);
        }
        assert_eq!(top_tags(threads.iter(), 2), [(tags[19], 7600), (tags[18], 7200)]);
        assert_eq!(counters.peak_bytes(threads.iter()), 76_000);
    }
}
