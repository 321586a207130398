//! The barriers of a block: which threads have arrived, and when a barrier completes.

/// Barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// Threads of a warp arriving at a barrier.
pub(crate) struct Arrival {
    pub(crate) warp: usize,
    pub(crate) lanes: u32,
    /// Whether they wait for the others.
    pub(crate) waits: bool,
    /// How many threads take part, if the code says; else all of the block.
    pub(crate) count: Option<u32>,
    /// The lanes whose predicate is true.
    pub(crate) pred: u32,
    pub(crate) pc: u32,
    pub(crate) aligned: bool,
}

/// What a barrier found when all were there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Met {
    pub(crate) arrived: Vec<u32>,
    pub(crate) waiting: Vec<u32>,
    pub(crate) count_true: u32,
    pub(crate) all_true: bool,
    /// Where the first of them waited.
    pub(crate) pc: u32,
    /// Whether all threads of the block were meant.
    pub(crate) whole_block: bool,
}

/// What is wrong with an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complaint {
    /// Other lanes of the warp arrived at another instruction.
    Diverged { other_pc: u32 },
    /// Others arrived with another number of threads.
    CountDiffers { first: Option<u32>, second: Option<u32> },
}

/// One barrier.
#[derive(Default)]
pub(crate) struct BarrierState {
    arrived: Vec<u32>,
    waiting: Vec<u32>,
    /// The instruction each warp arrived at.
    pcs: Vec<u32>,
    count: Option<u32>,
    first_pc: u32,
    count_true: u32,
    any_false: bool,
    used: bool,
}

impl BarrierState {
    /// Records an arrival.
    pub(crate) fn arrive(&mut self, arrival: &Arrival, warps: usize) -> Option<Complaint> {
        self.arrived.resize(warps, 0);
        self.waiting.resize(warps, 0);
        self.pcs.resize(warps, 0);
        let mut complaint = None;
        if !self.used {
            (self.used, self.count, self.first_pc) = (true, arrival.count, arrival.pc);
        } else if self.count != arrival.count {
            complaint = Some(Complaint::CountDiffers { first: self.count, second: arrival.count });
        }
        let warp = arrival.warp;
        if arrival.aligned && self.arrived[warp] != 0 && self.pcs[warp] != arrival.pc {
            complaint = Some(Complaint::Diverged { other_pc: self.pcs[warp] });
        }
        self.arrived[warp] |= arrival.lanes;
        self.pcs[warp] = arrival.pc;
        if arrival.waits {
            self.waiting[warp] |= arrival.lanes;
        }
        self.count_true += arrival.pred.count_ones();
        self.any_false |= arrival.pred != arrival.lanes;
        complaint
    }

    /// What was met if all are there, given the lanes of each warp that have not exited.
    pub(crate) fn complete(&mut self, live: &[u32]) -> Option<Met> {
        if !self.used || !self.is_full(live) {
            return None;
        }
        let state = std::mem::take(self);
        Some(Met {
            arrived: state.arrived,
            waiting: state.waiting,
            count_true: state.count_true,
            all_true: !state.any_false,
            pc: state.first_pc,
            whole_block: state.count.is_none(),
        })
    }

    fn is_full(&self, live: &[u32]) -> bool {
        let here = |warp: usize, lanes: u32| self.arrived.get(warp).copied().unwrap_or(0) & lanes == lanes;
        match self.count {
            None => live.iter().enumerate().all(|(warp, lanes)| here(warp, *lanes)),
            // Counts are in warps: one that is there with all its living lanes counts whole.
            Some(count) => {
                let counted = self.arrived.iter().zip(live).filter(|(arrived, _)| **arrived != 0);
                let sum: u32 = counted
                    .map(|(arrived, live)| if arrived & live == *live { 32 } else { arrived.count_ones() })
                    .sum();
                sum >= count
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(warp: usize, lanes: u32, count: Option<u32>) -> Arrival {
        Arrival { warp, lanes, waits: true, count, pred: lanes, pc: 7, aligned: true }
    }

    #[test]
    fn exited_lanes_are_not_waited_for() {
        let mut barrier = BarrierState::default();
        assert!(barrier.arrive(&arrival(0, 0xffff, None), 2).is_none());
        assert!(barrier.complete(&[u32::MAX, u32::MAX]).is_none());
        assert!(barrier.complete(&[0xffff, u32::MAX]).is_none());
        let met = barrier.complete(&[0xffff, 0]).unwrap();
        assert_eq!((met.count_true, met.all_true), (16, true));
    }

    #[test]
    fn counts_are_warps() {
        let mut barrier = BarrierState::default();
        barrier.arrive(&arrival(1, u32::MAX, Some(64)), 3);
        assert!(barrier.complete(&[u32::MAX; 3]).is_none());
        let odd = barrier.arrive(&arrival(2, u32::MAX, Some(96)), 3);
        assert_eq!(odd, Some(Complaint::CountDiffers { first: Some(64), second: Some(96) }));
        assert!(barrier.complete(&[u32::MAX; 3]).is_some());
    }
}
