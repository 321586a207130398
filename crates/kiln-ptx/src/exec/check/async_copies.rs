//! Asynchronous copies whose data is not there yet.
//!
//! A copy is pending from its instruction until its thread waits for it. Until then no thread may use the place it goes to, nor write the
//! place it comes from.

use std::collections::HashMap;

use super::bulk_copies::BulkCopies;
use super::generic_writes::GenericWrites;
use crate::exec::warp_register::LANES;

/// A copy of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    /// Where it reads global memory that the launch may write, and how much.
    pub(crate) source: Option<(u64, u32)>,
    pub(crate) pc: u32,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    /// How many groups the thread had committed before.
    group: u32,
    /// How many copies the thread had started before.
    number: u32,
    /// Whether an arrival at an mbarrier object has told of it.
    is_told: bool,
}

impl Copy {
    /// A copy of `bytes` to `address` in shared memory that a thread starts now.
    pub(crate) fn new((warp, lane): (usize, usize), pc: u32, address: u64, bytes: u32) -> Self {
        Self { address, bytes, source: None, pc, warp, lane, group: 0, number: 0, is_told: false }
    }

    /// The same with what it reads of memory that the launch may write.
    pub(crate) fn reading_from(self, source: Option<(u64, u32)>) -> Self {
        Self { source, ..self }
    }

    /// The words of global memory it reads.
    fn source_words(&self) -> std::ops::Range<u64> {
        self.source.map_or(0..0, |(from, bytes)| from / 4..from.saturating_add(u64::from(bytes)).div_ceil(4))
    }
}

/// The pending copies of a block.
#[derive(Default)]
pub(crate) struct Copies {
    threads: Vec<Thread>,
    pending: usize,
    /// How many pending copies go to each word of shared memory.
    words: Vec<u16>,
    /// How many pending copies read each word of global memory.
    source_words: HashMap<u64, u32>,
    /// Bulk and tensor copies.
    pub(crate) bulk: BulkCopies,
    /// What threads wrote, if the code has copies or products that read through the async proxy.
    pub(crate) generic: Option<GenericWrites>,
}

#[derive(Clone, Default)]
struct Thread {
    pending: Vec<Copy>,
    committed: u32,
    started: u32,
}

impl Copies {
    /// Those of a block that starts; `reads_async` if its code reads shared memory through the async proxy.
    pub(crate) fn of_block(reads_async: bool) -> Self {
        Self { generic: reads_async.then(GenericWrites::default), ..Self::default() }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// A thread starts a copy.
    pub(crate) fn start(&mut self, copy: Copy) {
        let thread = self.thread(copy.warp, copy.lane);
        let copy = Copy { group: thread.committed, number: thread.started, ..copy };
        thread.started += 1;
        thread.pending.push(copy);
        self.pending += 1;
        self.count(&copy, |count| count.saturating_add(1));
        for word in copy.source_words() {
            *self.source_words.entry(word).or_default() += 1;
        }
    }

    /// A thread commits what it started to a group.
    pub(crate) fn commit(&mut self, warp: usize, lane: usize) {
        self.thread(warp, lane).committed += 1;
    }

    /// A thread waits until at most `open` of its groups are pending, or for everything: the copies that are done.
    pub(crate) fn wait(&mut self, warp: usize, lane: usize, open: Option<u32>) -> Vec<Copy> {
        let thread = self.thread(warp, lane);
        let first_open = open.map_or(u32::MAX, |open| thread.committed.saturating_sub(open));
        let done: Vec<Copy> = thread.pending.extract_if(.., |copy| copy.group < first_open).collect();
        self.drop_done(&done);
        done
    }

    /// How many copies a thread has started.
    pub(crate) fn started(&self, warp: usize, lane: usize) -> u32 {
        self.threads.get(warp * LANES + lane).map_or(0, |thread| thread.started)
    }

    /// The pending copies of a thread that no arrival has told of: this one does.
    pub(crate) fn tell(&mut self, warp: usize, lane: usize) -> Vec<Copy> {
        let untold = self.thread(warp, lane).pending.iter_mut().filter(|copy| !copy.is_told);
        untold
            .map(|copy| {
                copy.is_told = true;
                *copy
            })
            .collect()
    }

    /// Copies of a thread are done: all up to this number.
    pub(crate) fn finish(&mut self, warp: usize, lane: usize, until: u32) {
        let pending = &mut self.thread(warp, lane).pending;
        let done: Vec<Copy> = pending.extract_if(.., |copy| copy.number < until).collect();
        self.drop_done(&done);
    }

    fn drop_done(&mut self, done: &[Copy]) {
        self.pending -= done.len();
        for copy in done {
            self.count(copy, |count| count.saturating_sub(1));
            for word in copy.source_words() {
                if let Some(count) = self.source_words.get_mut(&word) {
                    *count -= 1;
                    if *count == 0 {
                        self.source_words.remove(&word);
                    }
                }
            }
        }
    }

    /// A pending copy that goes where an access reaches.
    pub(crate) fn at(&self, address: u64, bytes: u32) -> Option<Copy> {
        let words = (address / 4) as usize..(address + u64::from(bytes)).div_ceil(4) as usize;
        if !self.words.get(words).unwrap_or(&self.words).iter().any(|count| *count != 0) {
            return None;
        }
        let meets = |copy: &&Copy| {
            copy.address < address + u64::from(bytes) && address < copy.address + u64::from(copy.bytes)
        };
        self.threads.iter().flat_map(|thread| &thread.pending).find(meets).copied()
    }

    /// Whether a pending copy reads global memory that the launch may write.
    #[inline(always)]
    pub(crate) fn has_sources(&self) -> bool {
        !self.source_words.is_empty()
    }

    /// A pending copy that reads where a write reaches.
    pub(crate) fn reading(&self, address: u64, bytes: u32) -> Option<Copy> {
        let end = address.saturating_add(u64::from(bytes));
        if !(address / 4..end.div_ceil(4)).any(|word| self.source_words.contains_key(&word)) {
            return None;
        }
        let meets = |copy: &&Copy| {
            copy.source
                .is_some_and(|(from, bytes)| from < end && address < from.saturating_add(u64::from(bytes)))
        };
        self.threads.iter().flat_map(|thread| &thread.pending).find(meets).copied()
    }

    fn thread(&mut self, warp: usize, lane: usize) -> &mut Thread {
        let at = warp * LANES + lane;
        if self.threads.len() <= at {
            self.threads.resize(at + 1, Thread::default());
        }
        &mut self.threads[at]
    }

    fn count(&mut self, copy: &Copy, change: impl Fn(u16) -> u16) {
        let end = (copy.address + u64::from(copy.bytes)).div_ceil(4) as usize;
        if self.words.len() < end {
            self.words.resize(end, 0);
        }
        self.words[(copy.address / 4) as usize..end].iter_mut().for_each(|count| *count = change(*count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_all_but_the_last_groups() {
        let mut copies = Copies::default();
        let copy = |pc: u32, address: u64, bytes: u32| Copy::new((0, 3), pc, address, bytes);
        copies.start(Copy { source: Some((0x100, 16)), ..copy(1, 0, 16) });
        copies.commit(0, 3);
        copies.start(copy(2, 16, 16));
        copies.commit(0, 3);
        copies.start(copy(3, 32, 4));
        assert!(copies.reading(0x10f, 1).is_some() && copies.reading(0x110, 4).is_none());
        assert!(copies.wait(0, 4, None).is_empty());
        assert_eq!(copies.wait(0, 3, Some(1)).iter().map(|copy| copy.pc).collect::<Vec<_>>(), [1]);
        assert!(!copies.has_sources());
        assert_eq!(copies.wait(0, 3, Some(0)).iter().map(|copy| copy.pc).collect::<Vec<_>>(), [2]);
        assert!(copies.at(33, 1).is_some() && copies.at(36, 4).is_none());
        assert_eq!(copies.wait(0, 3, None).len(), 1);
        assert!(copies.is_empty());
    }
}
