//! In which order the race check sees an access and those before it: of one block, and of the grid.

use super::access_mark::Mark;
use super::access_order::Order;
use super::happens_before::{Clocks, TIME_BITS};
use super::race_rule::Rules;
use super::races::LaunchRaces;

/// The order of accesses to shared memory.
pub(super) struct InBlock<'a> {
    pub(super) clocks: &'a Clocks,
    pub(super) warp: usize,
    pub(super) lane: usize,
    pub(super) epoch: u32,
}

impl InBlock<'_> {
    #[inline(always)]
    fn split(mark: Mark) -> (usize, u32) {
        ((mark.epoch() >> TIME_BITS) as usize, mark.epoch() & ((1 << TIME_BITS) - 1))
    }
}

impl Order for InBlock<'_> {
    #[inline(always)]
    fn is_before(&self, mark: Mark) -> bool {
        let (warp, time) = Self::split(mark);
        self.clocks.is_before(warp, mark.lane(), time, self.warp, self.lane)
    }

    #[inline(always)]
    fn is_same_thread(&self, mark: Mark) -> bool {
        mark.lane() == self.lane && (mark.epoch() ^ self.epoch) >> TIME_BITS == 0
    }

    fn is_same_block(&self, _: Mark) -> bool {
        true
    }

    fn is_same_cluster(&self, _: Mark) -> bool {
        true
    }

    fn lacks_fence(&self, mark: Mark) -> bool {
        let (warp, time) = Self::split(mark);
        self.clocks.lacks_fence(self.clocks.number(warp), mark.lane(), time, self.warp, self.lane)
    }

    fn is_heard_of(&self, mark: Mark) -> bool {
        let (warp, time) = Self::split(mark);
        self.clocks.has_heard_of(self.clocks.number(warp), mark.lane(), time, self.warp, self.lane)
    }

    #[inline(always)]
    fn is_settled(&self, mark: Mark) -> bool {
        let (warp, time) = Self::split(mark);
        time <= self.clocks.base.own[warp]
    }

    fn warp_and_block(&self, mark: Mark) -> (u64, u64) {
        (u64::from(self.clocks.number(Self::split(mark).0)), 0)
    }

    #[inline(always)]
    fn rules(&self) -> Rules {
        self.clocks.rules
    }
}

/// The order of accesses to global memory.
pub(super) struct InGrid<'a> {
    pub(super) clocks: &'a Clocks,
    pub(super) launch: &'a LaunchRaces,
    pub(super) warp: usize,
    pub(super) number: u32,
    pub(super) lane: usize,
    pub(super) epoch: u32,
}

impl Order for InGrid<'_> {
    #[inline(always)]
    fn is_before(&self, mark: Mark) -> bool {
        let (number, time) = self.launch.epochs.get(mark.epoch());
        match self.clocks.own_warp(number) {
            Some(warp) => self.clocks.is_before(warp, mark.lane(), time, self.warp, self.lane),
            None => self.clocks.is_foreign_before(number, mark.lane(), time, self.warp, self.lane),
        }
    }

    #[inline(always)]
    fn is_same_thread(&self, mark: Mark) -> bool {
        mark.lane() == self.lane
            && (mark.epoch() == self.epoch || self.launch.epochs.get(mark.epoch()).0 == self.number)
    }

    fn is_same_block(&self, mark: Mark) -> bool {
        self.clocks.own_warp(self.launch.epochs.get(mark.epoch()).0).is_some()
    }

    fn is_same_cluster(&self, mark: Mark) -> bool {
        let cluster =
            |warp: u32| self.launch.clusters.place(u64::from(warp / self.launch.warps_per_block.max(1))).0;
        cluster(self.launch.epochs.get(mark.epoch()).0) == cluster(self.number)
    }

    fn lacks_fence(&self, mark: Mark) -> bool {
        let (number, time) = self.launch.epochs.get(mark.epoch());
        self.clocks.lacks_fence(number, mark.lane(), time, self.warp, self.lane)
    }

    fn is_heard_of(&self, mark: Mark) -> bool {
        let (number, time) = self.launch.epochs.get(mark.epoch());
        self.clocks.has_heard_of(number, mark.lane(), time, self.warp, self.lane)
    }

    #[inline(always)]
    fn is_settled(&self, mark: Mark) -> bool {
        if !self.launch.alone {
            return false;
        }
        let (number, time) = self.launch.epochs.get(mark.epoch());
        self.clocks.own_warp(number).is_some_and(|warp| time <= self.clocks.base.own[warp])
    }

    fn warp_and_block(&self, mark: Mark) -> (u64, u64) {
        let warp = self.launch.epochs.get(mark.epoch()).0;
        (u64::from(warp), u64::from(warp / self.launch.warps_per_block.max(1)))
    }

    #[inline(always)]
    fn rules(&self) -> Rules {
        self.clocks.rules
    }
}
