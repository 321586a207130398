//! Which pinned memory copies of pageable memory go through: blocks that are idle, and those that copies in a queue still use.
//!
//! The driver of a GPU waits for all work of a context before it frees pinned memory, and takes longer to pin a page than to copy it. So a block is kept for the
//! next copies. This is the bookkeeping: it makes and frees nothing, and its callers hold the lock of the context. What [`take`](StagingPool::take) and the others
//! return is made and freed without that lock.
//!
//! A block is in one of three places: with a copy that is being queued or waited for, in flight behind its copy on a stream, or idle. It leaves the second when a wait
//! that began after the copy was queued has ended. Sizes are rounded up to classes, four between a power of two and the next.

use std::collections::{BTreeMap, VecDeque};

/// Bytes of all blocks of a context. So much may be in flight: a further copy waits, because pinned memory is taken away from the whole machine. Idle blocks and those in
/// use are together no more, so that a context never has more than its copies had at some time.
pub(crate) const POOL_BYTES: u64 = 256 << 20;
/// Blocks in flight; a further copy waits. Each is a call of the driver to make, and the smallest are a page.
pub(crate) const MOST_IN_FLIGHT: usize = 1024;
/// The smallest class.
const PAGE_BYTES: u64 = 4096;

/// A block, as the pool knows it.
pub(crate) struct Staged<B> {
    pub(crate) block: B,
    /// The size of its class.
    bytes: u64,
}

impl<B> Staged<B> {
    /// A block that was made because the pool had none.
    pub(crate) fn new(block: B, bytes: u64) -> Self {
        Self { block, bytes }
    }
}

/// What a copy gets.
pub(crate) enum Taken<B> {
    Idle(Staged<B>),
    /// There is none: one of so many bytes is to be made, after these were freed. [`StagingPool::not_made`] says if that fails.
    Missing {
        bytes: u64,
        excess: Vec<B>,
    },
}

/// What a wait was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finished<S> {
    /// The work of one stream.
    Stream(S),
    /// That of the default stream and of all that it waits for.
    Blocking,
    /// All work of the context.
    All,
}

/// The blocks of one context, whose streams are named by `S`.
pub(crate) struct StagingPool<S, B> {
    /// By the size of the class.
    idle: BTreeMap<u64, SizeClass<B>>,
    idle_bytes: u64,
    /// Bytes that copies have.
    used_bytes: u64,
    in_flight: Vec<StreamCopies<S, B>>,
    flying: usize,
    /// Copies that were queued so far.
    queued: u64,
    /// A list that is empty, for the next stream.
    spare: VecDeque<(u64, Staged<B>)>,
    turn: u64,
}

struct SizeClass<B> {
    blocks: Vec<B>,
    /// The turn in which one was taken or came back last.
    last_use: u64,
}

/// The copies of one stream, in the order in which they were queued, with their numbers.
struct StreamCopies<S, B> {
    stream: S,
    /// Whether the default stream waits for it.
    is_blocking: bool,
    copies: VecDeque<(u64, Staged<B>)>,
}

impl<S, B> Default for StagingPool<S, B> {
    fn default() -> Self {
        Self {
            idle: BTreeMap::new(),
            idle_bytes: 0,
            used_bytes: 0,
            in_flight: Vec::new(),
            flying: 0,
            queued: 0,
            spare: VecDeque::new(),
            turn: 0,
        }
    }
}

impl<B> Default for SizeClass<B> {
    fn default() -> Self {
        Self { blocks: Vec::new(), last_use: 0 }
    }
}

impl<B> SizeClass<B> {
    fn add(&mut self, block: B, turn: u64) {
        self.last_use = turn;
        self.blocks.push(block);
    }
}

/// The size of the class for so many bytes.
fn class_of(bytes: u64) -> u64 {
    let Some(power) = bytes.checked_next_power_of_two() else { return bytes };
    bytes.checked_next_multiple_of((power / 8).max(PAGE_BYTES)).unwrap_or(bytes)
}

impl<S: Copy + PartialEq, B> StagingPool<S, B> {
    /// A block of at least so many bytes.
    pub(crate) fn take(&mut self, bytes: u64) -> Taken<B> {
        let wanted = class_of(bytes);
        self.turn += 1;
        let fitting = self.idle.range_mut(wanted..=wanted.saturating_mul(2));
        for (bytes, class) in fitting {
            if let Some(block) = class.blocks.pop() {
                class.last_use = self.turn;
                self.idle_bytes -= bytes;
                self.used_bytes += bytes;
                return Taken::Idle(Staged { block, bytes: *bytes });
            }
        }
        self.used_bytes = self.used_bytes.saturating_add(wanted);
        Taken::Missing { bytes: wanted, excess: self.excess() }
    }

    /// The block that [`take`](Self::take) asked for could not be made.
    pub(crate) fn not_made(&mut self, bytes: u64) {
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }

    /// A copy was queued on a stream, and has the block until a wait for it ends. `is_blocking`: the default stream waits for that stream, or is it.
    pub(crate) fn queue(&mut self, (stream, is_blocking): (S, bool), staged: Staged<B>) {
        let number = self.queued;
        self.queued += 1;
        self.flying += 1;
        if let Some(known) = self.in_flight.iter_mut().find(|known| known.stream == stream) {
            return known.copies.push_back((number, staged));
        }
        let mut copies = std::mem::take(&mut self.spare);
        copies.push_back((number, staged));
        self.in_flight.push(StreamCopies { stream, is_blocking, copies });
    }

    /// Whether so much is in flight that a copy has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.used_bytes > POOL_BYTES || self.flying > MOST_IN_FLIGHT
    }

    /// Whether any copy may be under way.
    pub(crate) fn has_in_flight(&self) -> bool {
        self.flying > 0
    }

    /// How many copies were queued so far. A wait that begins now is for these, and not for later ones.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// A wait ended for the copies of streams that were queued before: their blocks are idle. What is to be freed for that.
    pub(crate) fn finish(&mut self, what: Finished<S>, before: u64) -> Vec<B> {
        self.turn += 1;
        let mut at = 0;
        while let Some(known) = self.in_flight.get_mut(at) {
            let is_meant = match what {
                Finished::Stream(stream) => known.stream == stream,
                Finished::Blocking => known.is_blocking,
                Finished::All => true,
            };
            while is_meant && known.copies.front().is_some_and(|(number, _)| *number < before) {
                let Some((_, staged)) = known.copies.pop_front() else { break };
                self.flying -= 1;
                self.used_bytes = self.used_bytes.saturating_sub(staged.bytes);
                self.idle_bytes += staged.bytes;
                self.idle.entry(staged.bytes).or_default().add(staged.block, self.turn);
            }
            if known.copies.is_empty() {
                self.spare = self.in_flight.swap_remove(at).copies;
            } else {
                at += 1;
            }
        }
        self.excess()
    }

    /// A copy is done with a block that it did not leave in flight. What is to be freed for that.
    pub(crate) fn give_back(&mut self, staged: Staged<B>) -> Vec<B> {
        self.turn += 1;
        self.used_bytes = self.used_bytes.saturating_sub(staged.bytes);
        self.idle_bytes += staged.bytes;
        self.idle.entry(staged.bytes).or_default().add(staged.block, self.turn);
        self.excess()
    }

    /// All idle blocks, to be freed where there is no memory for others.
    pub(crate) fn take_idle(&mut self) -> Vec<B> {
        self.idle_bytes = 0;
        self.idle.values_mut().flat_map(|class| class.blocks.drain(..)).collect()
    }

    /// All blocks, when no work uses them any more.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = B> {
        let idle = self.idle.into_values().flat_map(|class| class.blocks);
        let in_flight = self.in_flight.into_iter().flat_map(|known| known.copies);
        idle.chain(in_flight.map(|(_, staged)| staged.block))
    }

    /// Idle blocks beyond the bound, those of the class first that was not used for longest.
    fn excess(&mut self) -> Vec<B> {
        let mut excess = Vec::new();
        while self.idle_bytes > 0 && self.idle_bytes.saturating_add(self.used_bytes) > POOL_BYTES {
            let idle = self.idle.iter_mut().filter(|(_, class)| !class.blocks.is_empty());
            let Some((bytes, class)) = idle.min_by_key(|(_, class)| class.last_use) else { break };
            excess.extend(class.blocks.pop());
            self.idle_bytes -= bytes;
        }
        excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block is a number here, and a stream is one.
    #[derive(Default)]
    struct Made {
        pool: StagingPool<u32, u32>,
        made: u32,
        freed: Vec<u32>,
    }

    const MIB: u64 = 1 << 20;

    impl Made {
        fn take(&mut self, bytes: u64) -> Staged<u32> {
            match self.pool.take(bytes) {
                Taken::Idle(staged) => staged,
                Taken::Missing { bytes, excess } => {
                    self.freed.extend(excess);
                    self.made += 1;
                    Staged::new(self.made, bytes)
                }
            }
        }

        fn copy(&mut self, bytes: u64, to: u32) -> u32 {
            let staged = self.take(bytes);
            let block = staged.block;
            self.pool.queue((to, true), staged);
            block
        }

        fn finish(&mut self, what: Finished<u32>, before: u64) {
            let excess = self.pool.finish(what, before);
            self.freed.extend(excess);
        }
    }

    #[test]
    fn classes_are_four_to_a_power_of_two_and_whole_pages() {
        for (bytes, class) in [
            (1, 4096),
            (4096, 4096),
            (4097, 8192),
            (16_385, 20_480),
            (MIB, MIB),
            (MIB + 1, MIB + MIB / 4),
            (2 * MIB - 1, 2 * MIB),
        ] {
            assert_eq!(class_of(bytes), class, "{bytes}");
        }
        assert_eq!(class_of(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_block_is_used_again_when_its_wait_began_after_the_copy() {
        let mut made = Made::default();
        let first = made.copy(100, 1);
        let before = made.pool.queued();
        let second = made.copy(100, 1);
        let other = made.copy(100, 2);
        assert_eq!(made.made, 3);
        made.finish(Finished::Stream(1), before);
        assert_eq!(made.copy(4000, 1), first);
        // The second was queued after the wait began, and the third is on another stream.
        assert_eq!(made.copy(1, 1), 4);
        let before = made.pool.queued();
        made.finish(Finished::All, before);
        let again: Vec<u32> = (0..4).map(|_| made.copy(100, 3)).collect();
        assert!([first, second, other, 4].iter().all(|block| again.contains(block)), "{again:?}");
        assert_eq!((made.made, made.freed.len()), (4, 0));
    }

    #[test]
    fn the_default_stream_is_waited_for_with_the_streams_that_it_waits_for() {
        let mut made = Made::default();
        made.copy(100, 1);
        let staged = made.take(100);
        made.pool.queue((2, false), staged);
        let before = made.pool.queued();
        made.finish(Finished::Blocking, before);
        assert_eq!((made.copy(100, 1), made.copy(100, 1)), (1, 3));
    }

    #[test]
    fn a_larger_block_is_taken_up_to_twice_the_size() {
        let mut made = Made::default();
        made.copy(2 * MIB, 1);
        made.finish(Finished::All, u64::MAX);
        assert_eq!(made.copy(MIB, 1), 1);
        made.finish(Finished::All, u64::MAX);
        assert_eq!(made.copy(MIB / 2, 1), 2);
    }

    #[test]
    fn all_blocks_together_keep_the_bound_and_the_class_that_was_used_last_stays() {
        let mut made = Made::default();
        // Many sizes, each once: what is idle never goes beyond the bound.
        for size in 1..200 {
            made.copy(size * MIB, 1);
            made.finish(Finished::All, u64::MAX);
            assert!(made.pool.idle_bytes + made.pool.used_bytes <= POOL_BYTES);
        }
        let last = made.made;
        assert!(made.freed.len() > 20 && !made.freed.contains(&last));
        assert_eq!(made.copy(199 * MIB, 1), last);
        // A copy beyond the bound gets its block, and the block is not kept.
        let large = made.copy(POOL_BYTES + 1, 1);
        assert!(made.pool.is_full());
        made.finish(Finished::All, u64::MAX);
        assert!(made.freed.contains(&large) && !made.pool.is_full());
    }

    #[test]
    fn what_was_idle_for_longest_is_freed_first() {
        let mut made = Made::default();
        let (large, small) = (made.copy(128 * MIB, 1), made.copy(96 * MIB, 2));
        made.finish(Finished::Stream(1), u64::MAX);
        made.finish(Finished::Stream(2), u64::MAX);
        made.copy(40 * MIB, 1);
        assert_eq!(made.freed, [large]);
        assert_eq!(made.copy(90 * MIB, 1), small);
    }

    #[test]
    fn few_or_many_copies_in_flight_are_full() {
        let mut made = Made::default();
        for _ in 0..MOST_IN_FLIGHT {
            made.copy(1, 1);
            assert!(!made.pool.is_full());
        }
        made.copy(1, 1);
        assert!(made.pool.is_full());
        made.finish(Finished::All, u64::MAX);
        assert!(!made.pool.is_full());
        made.copy(POOL_BYTES, 1);
        assert!(!made.pool.is_full());
        made.copy(1, 1);
        assert!(made.pool.is_full());
    }

    #[test]
    fn what_could_not_be_made_and_what_is_idle_is_not_counted() {
        let mut made = Made::default();
        let Taken::Missing { bytes, .. } = made.pool.take(POOL_BYTES * 4) else { panic!("there is none") };
        assert!(made.pool.is_full());
        made.pool.not_made(bytes);
        assert!(!made.pool.is_full());
        let staged = made.take(100);
        assert!(made.pool.give_back(staged).is_empty());
        assert_eq!((made.pool.take_idle(), made.pool.take_idle()), (vec![1], vec![]));
        made.copy(100, 1);
        let staged = made.take(100);
        made.pool.give_back(staged);
        let mut all: Vec<u32> = made.pool.into_blocks().collect();
        all.sort_unstable();
        assert_eq!(all, [2, 3]);
    }
}
