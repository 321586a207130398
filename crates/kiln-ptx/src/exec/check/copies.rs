//! Asynchronous copies whose data is not there yet.
//!
//! A copy is pending from its instruction until its thread waits for it. Until then no thread may use the place it goes to.

use crate::exec::column::LANES;

/// A copy of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) pc: u32,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    /// How many groups the thread had committed before.
    group: u32,
}

/// The pending copies of a block.
#[derive(Default)]
pub(crate) struct Copies {
    threads: Vec<Thread>,
    pending: usize,
    /// How many pending copies go to each word of shared memory.
    words: Vec<u16>,
}

#[derive(Clone, Default)]
struct Thread {
    pending: Vec<Copy>,
    committed: u32,
}

impl Copies {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// A thread starts a copy.
    pub(crate) fn start(&mut self, warp: usize, lane: usize, pc: u32, address: u64, bytes: u32) {
        let thread = self.thread(warp, lane);
        let copy = Copy { address, bytes, pc, warp, lane, group: thread.committed };
        thread.pending.push(copy);
        self.pending += 1;
        self.count(&copy, |count| count.saturating_add(1));
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
        self.pending -= done.len();
        for copy in &done {
            self.count(copy, |count| count.saturating_sub(1));
        }
        done
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
        copies.start(0, 3, 1, 0, 16);
        copies.commit(0, 3);
        copies.start(0, 3, 2, 16, 16);
        copies.commit(0, 3);
        copies.start(0, 3, 3, 32, 4);
        assert!(copies.wait(0, 4, None).is_empty());
        assert_eq!(copies.wait(0, 3, Some(1)).iter().map(|copy| copy.pc).collect::<Vec<_>>(), [1]);
        assert_eq!(copies.wait(0, 3, Some(0)).iter().map(|copy| copy.pc).collect::<Vec<_>>(), [2]);
        assert!(copies.at(33, 1).is_some() && copies.at(36, 4).is_none());
        assert_eq!(copies.wait(0, 3, None).len(), 1);
        assert!(copies.is_empty());
    }
}
