//! Whether a new access races with a recorded one.

use std::fmt;

use super::access_mark::{Mark, Touching};
use super::race_rule::{RaceRule, Rules};

/// What an access asks about the accesses before it.
pub(crate) trait Order {
    /// Whether the remembered access happens before the new one.
    fn is_before(&self, mark: Mark) -> bool;
    /// Whether both are of one thread.
    fn is_same_thread(&self, mark: Mark) -> bool;
    /// Whether both are of one block.
    fn is_same_block(&self, mark: Mark) -> bool;
    /// Whether both are of one cluster.
    fn is_same_cluster(&self, mark: Mark) -> bool;
    /// Whether the new access is of a thread that waited for a write behind the remembered one, with no fence in between.
    fn lacks_fence(&self, mark: Mark) -> bool;
    /// Whether the thread of the new access has read a write that releases the remembered one, and has no fence since that would order them.
    fn is_heard_of(&self, mark: Mark) -> bool;
    /// Whether it happens before everything that can still come to this memory.
    fn is_settled(&self, mark: Mark) -> bool;
    /// The warp of an access, by its number in the grid, and the block.
    fn warp_and_block(&self, mark: Mark) -> (u64, u64);
    /// The rules that hold.
    fn rules(&self) -> Rules;

    /// How far apart two threads are: 3 in two blocks, 2 in two warps, 1 in two lanes.
    fn distance(&self, a: Mark, b: Mark) -> u32 {
        let ((warp, block), (other_warp, other_block)) = (self.warp_and_block(a), self.warp_and_block(b));
        match () {
            () if block != other_block => 3,
            () if warp != other_warp => 2,
            () if a.lane() != b.lane() => 1,
            () => 0,
        }
    }
}

/// Why two accesses race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RaceCause {
    /// Nothing orders them.
    Unordered,
    /// Both are strong, but a scope does not include the other thread.
    NarrowScope,
    /// Both are strong, but they are of different sizes.
    DifferentSizes,
    /// Both are strong, and the later thread waited for a flag which the earlier one set behind its write with no fence in between: it may read the old
    /// value.
    NoFence,
}

impl fmt::Display for RaceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unordered => "with nothing to order them",
            Self::NarrowScope => "strong, but with a scope that does not include both threads",
            Self::DifferentSizes => "strong, but of different sizes",
            Self::NoFence => {
                "strong, but with no fence between that write and the flag that the reader waited for, so the old value may be read"
            }
        })
    }
}

/// Whether an old access and a new one race, and why.
#[inline(always)]
pub(super) fn race<O: Order>(old: Mark, new: Mark, order: &O) -> Option<RaceCause> {
    let (first, second) = (old.kind(), new.kind());
    if !first.writes() && !second.writes() {
        return None;
    }
    if order.is_same_thread(old) {
        return None;
    }
    let mut cause = RaceCause::Unordered;
    if first.is_strong() && second.is_strong() {
        let rules = order.rules();
        cause = match () {
            () if !rules.has(RaceRule::StrongPair) => RaceCause::Unordered,
            () if old.size() != new.size() && rules.has(RaceRule::AccessSize) => RaceCause::DifferentSizes,
            () if !(reaches(old, old, order) && reaches(new, old, order))
                && rules.has(RaceRule::AccessScope)
                && !order.is_same_block(old) =>
            {
                RaceCause::NarrowScope
            }
            () => return None,
        };
    }
    if order.is_before(old) || is_taken_out(first, second, order.rules()) {
        return None;
    }
    Some(cause)
}

/// Whether the scope of one of two accesses includes the thread of the other, which is in another block.
fn reaches<O: Order>(mark: Mark, old: Mark, order: &O) -> bool {
    mark.is_wide() || mark.is_of_cluster() && order.is_same_cluster(old)
}

fn is_taken_out(first: Touching, second: Touching, rules: Rules) -> bool {
    !rules.has(match (first.writes(), second.writes()) {
        (true, true) => RaceRule::WriteAfterWrite,
        (true, false) => RaceRule::ReadAfterWrite,
        _ => RaceRule::WriteAfterRead,
    })
}
