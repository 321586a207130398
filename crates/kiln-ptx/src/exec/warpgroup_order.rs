//! What the four warps of a warpgroup execute: the same instructions, one behind the other.
//!
//! What the first of them executes is kept until all four have executed it. A product is done by the four together: a warp that waits for a group waits
//! until the others have issued it, too.

use std::collections::VecDeque;
use std::sync::Arc;

use super::check::{Clock, joined_options};
use super::warp_register::FULL;

/// Warps of a warpgroup.
pub(crate) const GROUP_WARPS: usize = 4;
/// Instructions that a warp may be ahead of another; behind that the others are no longer compared.
const AHEAD_LIMIT: usize = 1 << 16;

/// An instruction of a warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Executed {
    pub(crate) pc: u32,
    /// The descriptors of A and B; zero where there is none.
    pub(crate) descriptors: [u64; 2],
}

/// What is wrong with an instruction of a warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlike {
    /// The block has only so many threads of the warpgroup.
    Incomplete(u32),
    /// Another warp executed another instruction.
    Instruction { other_pc: u32 },
    /// Another warp gave another descriptor.
    Descriptor { own: u64, other: u64 },
}

/// A warp that executed fewer instructions than another of its warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    /// The first instruction it did not execute.
    pub(crate) pc: u32,
    pub(crate) warp: usize,
    /// A warp that did.
    pub(crate) other: usize,
}

/// The warpgroups of a block.
#[derive(Default)]
pub(crate) struct WarpgroupOrder {
    groups: Vec<Group>,
}

#[derive(Clone, Default)]
struct Group {
    /// How many instructions all warps have executed.
    done: u64,
    /// Those behind that.
    open: VecDeque<Executed>,
    counts: [u64; GROUP_WARPS],
    /// What came before the groups that its warps have committed.
    clock: Option<Arc<Clock>>,
    is_told: bool,
}

impl WarpgroupOrder {
    /// A warp executes an instruction. `existing` are the lanes of each warp of the block.
    pub(crate) fn execute(&mut self, warp: usize, executed: Executed, existing: &[u32]) -> Option<Unlike> {
        let (at, rank) = (warp / GROUP_WARPS, warp % GROUP_WARPS);
        if self.groups.len() <= at {
            self.groups.resize(at + 1, Group::default());
        }
        let group = &mut self.groups[at];
        if group.is_told {
            return None;
        }
        let warps = (0..GROUP_WARPS).map(|rank| existing.get(at * GROUP_WARPS + rank).copied().unwrap_or(0));
        if warps.clone().any(|lanes| lanes != FULL) {
            group.is_told = true;
            return Some(Unlike::Incomplete(warps.map(u32::count_ones).sum()));
        }
        let place = (group.counts[rank] - group.done) as usize;
        group.counts[rank] += 1;
        let unlike = match group.open.get(place) {
            None if place >= AHEAD_LIMIT => {
                group.is_told = true;
                None
            }
            None => {
                group.open.push_back(executed);
                None
            }
            Some(other) if other.pc != executed.pc => Some(Unlike::Instruction { other_pc: other.pc }),
            Some(other) => {
                let pairs = executed.descriptors.into_iter().zip(other.descriptors);
                let mut unlike = pairs.filter(|(own, other)| own != other);
                unlike.next().map(|(own, other)| Unlike::Descriptor { own, other })
            }
        };
        group.is_told |= unlike.is_some();
        while group.counts.iter().all(|count| *count > group.done) {
            group.done += 1;
            group.open.pop_front();
        }
        unlike
    }

    /// How many instructions a warp has executed.
    pub(crate) fn count(&self, warp: usize) -> u64 {
        self.groups.get(warp / GROUP_WARPS).map_or(0, |group| group.counts[warp % GROUP_WARPS])
    }

    /// Whether all warps that are there have executed so many instructions. `live` are the lanes of each warp that have not exited.
    pub(crate) fn is_reached(&self, warp: usize, count: u64, live: &[u32]) -> bool {
        let Some(group) = self.groups.get(warp / GROUP_WARPS) else { return true };
        let first = warp / GROUP_WARPS * GROUP_WARPS;
        let is_there = |rank: usize| live.get(first + rank).is_some_and(|lanes| *lanes != 0);
        group.is_told || (0..GROUP_WARPS).all(|rank| group.counts[rank] >= count || !is_there(rank))
    }

    /// A warp commits a group: what came before it is done when the group is waited for.
    pub(crate) fn bring(&mut self, warp: usize, clock: Option<&Arc<Clock>>) {
        if let Some(group) = self.groups.get_mut(warp / GROUP_WARPS) {
            group.clock = joined_options(group.clock.as_ref(), clock);
        }
    }

    /// What came before the groups of a warpgroup.
    pub(crate) fn brought(&self, warp: usize) -> Option<&Arc<Clock>> {
        self.groups.get(warp / GROUP_WARPS)?.clock.as_ref()
    }

    /// Warps that missed instructions, when the block is done.
    pub(crate) fn missed(&self) -> impl Iterator<Item = Missed> {
        let groups = self.groups.iter().enumerate().filter(|(_, group)| !group.is_told);
        groups.filter_map(|(at, group)| {
            let first = group.open.front()?;
            let rank = group.counts.iter().position(|count| *count == group.done)?;
            let other = group.counts.iter().position(|count| *count > group.done)?;
            let warp = |rank: usize| at * GROUP_WARPS + rank;
            Some(Missed { pc: first.pc, warp: warp(rank), other: warp(other) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_execute_the_same() {
        let at = |pc: u32| Executed { pc, descriptors: [0, 1] };
        let mut order = WarpgroupOrder::default();
        let block = [FULL; 8];
        for warp in [4, 6, 5, 7] {
            assert_eq!(order.execute(warp, at(3), &block), None);
        }
        assert_eq!(order.missed().count(), 0);
        assert_eq!(order.execute(4, at(9), &block), None);
        assert_eq!(order.missed().next(), Some(Missed { pc: 9, warp: 5, other: 4 }));
        let other = Executed { descriptors: [0, 2], ..at(9) };
        assert_eq!(order.execute(5, other, &block), Some(Unlike::Descriptor { own: 2, other: 1 }));
        assert_eq!(order.execute(0, at(3), &block[..3]), Some(Unlike::Incomplete(96)));
    }
}
