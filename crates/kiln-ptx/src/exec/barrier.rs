//! The barriers of a block: which threads have arrived, and when a barrier completes.

use super::lowered_code::BarrierKind;
use super::path_tree::Path;
use super::warp_register::LANES;

/// Barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// Threads of a warp arriving at a barrier.
pub(crate) struct Arrival {
    pub(crate) warp: usize,
    pub(crate) lanes: u32,
    pub(crate) kind: BarrierKind,
    /// How many threads take part, if the code says; else all of the block.
    pub(crate) count: Option<u32>,
    /// The lanes whose predicate is true.
    pub(crate) pred: u32,
    pub(crate) pc: u32,
    pub(crate) aligned: bool,
    /// The way of these threads since the last barrier of the whole block.
    pub(crate) path: Path,
    /// The steps behind it: the next one, and those behind the calls of the functions it is in.
    pub(crate) behind: Vec<u32>,
}

impl Arrival {
    /// Whether the threads wait for the others.
    pub(crate) fn waits(&self) -> bool {
        self.kind != BarrierKind::Arrive
    }
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
    /// The steps behind that: the next one, and those behind the calls of the functions it is in.
    pub(crate) behind: Vec<u32>,
    /// The way that the first of them came.
    pub(crate) path: Path,
    /// Where warps waited that came on other ways, each with its number.
    pub(crate) others: Vec<(u32, Path, usize)>,
    /// Whether all threads of the block were meant.
    pub(crate) whole_block: bool,
    /// Whether all threads of a warp must execute the instruction together.
    pub(crate) aligned: bool,
}

/// What is wrong with an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complaint {
    /// Other lanes of the warp arrived at another instruction.
    Diverged { other_pc: u32 },
    /// Other lanes of the warp arrived at the same instruction, perhaps on another way.
    OtherWay { other: Path },
    /// Others arrived with another number of threads.
    CountDiffers { first: Option<u32>, second: Option<u32> },
    /// Others combine predicates there in another way, or do not.
    KindDiffers { other: BarrierKind, other_pc: u32 },
    /// These threads have arrived before, and the barrier has not completed since.
    ArrivesAgain { other_pc: u32 },
    /// The number of threads is not possible.
    Count(BadCount),
}

/// What is wrong with the number of threads of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadCount {
    Zero,
    /// It is no multiple of the size of a warp.
    NoMultiple(u32),
    /// The block has fewer threads.
    TooLarge {
        count: u32,
        threads: u64,
    },
}

impl BadCount {
    /// What is wrong with the number of threads of a barrier, whatever the block.
    pub(crate) fn of(count: u32) -> Option<Self> {
        match count {
            0 => Some(Self::Zero),
            _ if !(count as usize).is_multiple_of(LANES) => Some(Self::NoMultiple(count)),
            _ => None,
        }
    }

    /// The same for a block of so many threads. Counts are in warps, so the last warp counts whole.
    pub(crate) fn in_block(count: u32, threads: u64) -> Option<Self> {
        let too_large = u64::from(count) > threads.next_multiple_of(LANES as u64);
        Self::of(count).or(too_large.then_some(Self::TooLarge { count, threads }))
    }

    /// It in words that complete "barrier 1 ...".
    pub(crate) fn words(self) -> String {
        match self {
            Self::Zero => {
                "waits for 0 threads; give a multiple of 32, or no count for all threads".to_owned()
            }
            Self::NoMultiple(count) => {
                format!("waits for {count} threads, which is no multiple of 32, the size of a warp")
            }
            Self::TooLarge { count, threads } => {
                format!("waits for {count} threads, and the block has {threads}")
            }
        }
    }
}

/// One barrier.
#[derive(Default)]
pub(crate) struct BarrierState {
    arrived: Vec<u32>,
    waiting: Vec<u32>,
    /// The instruction each warp arrived at, and the way that it came.
    places: Vec<(u32, Path)>,
    kind: Option<BarrierKind>,
    count: Option<u32>,
    first_pc: u32,
    first_path: Path,
    count_true: u32,
    any_false: bool,
    used: bool,
    aligned: bool,
    /// Whether threads arrived that had arrived before.
    arrived_again: bool,
    /// The steps behind the first arrival.
    behind: Vec<u32>,
}

impl BarrierState {
    /// Records an arrival.
    pub(crate) fn arrive(&mut self, arrival: &Arrival, warps: usize) -> Option<Complaint> {
        self.arrived.resize(warps, 0);
        self.waiting.resize(warps, 0);
        self.places.resize(warps, (0, Path::START));
        let mut complaint = None;
        if !self.used {
            (self.used, self.count) = (true, arrival.count);
            (self.first_pc, self.first_path) = (arrival.pc, arrival.path);
            self.behind.clone_from(&arrival.behind);
        } else if self.count != arrival.count {
            complaint = Some(Complaint::CountDiffers { first: self.count, second: arrival.count });
        }
        // An arrival and a wait go together; anything else does not.
        let alike = |kind: BarrierKind| if kind == BarrierKind::Arrive { BarrierKind::Sync } else { kind };
        let first = *self.kind.get_or_insert(alike(arrival.kind));
        if first != alike(arrival.kind) {
            complaint = Some(Complaint::KindDiffers { other: first, other_pc: self.first_pc });
        }
        let warp = arrival.warp;
        self.aligned |= arrival.aligned;
        if self.arrived[warp] & arrival.lanes != 0 {
            self.arrived_again = true;
            complaint = Some(Complaint::ArrivesAgain { other_pc: self.places[warp].0 });
        } else if arrival.aligned && self.arrived[warp] != 0 && !self.arrived_again {
            // Once threads have gone on to their next arrival, the others of their warp are at another one, too.
            match self.places[warp] {
                (pc, _) if pc != arrival.pc => complaint = Some(Complaint::Diverged { other_pc: pc }),
                (_, other) if other != arrival.path => complaint = Some(Complaint::OtherWay { other }),
                _ => {}
            }
        }
        self.arrived[warp] |= arrival.lanes;
        self.places[warp] = (arrival.pc, arrival.path);
        if arrival.waits() {
            self.waiting[warp] |= arrival.lanes;
        }
        self.count_true += arrival.pred.count_ones();
        self.any_false |= arrival.pred != arrival.lanes;
        complaint
    }

    /// Whether any thread has arrived since it last completed.
    #[inline(always)]
    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        if self.used {
            *self = Self::default();
        }
    }

    /// What was met if all are there, given the lanes of each warp that have not exited.
    pub(crate) fn complete(&mut self, live: &[u32]) -> Option<Met> {
        if !self.used || !self.is_full(live) {
            return None;
        }
        let state = std::mem::take(self);
        let first = (state.first_pc, state.first_path);
        let is_other = |(warp, place): &(usize, &(u32, Path))| state.arrived[*warp] != 0 && **place != first;
        let places = state.places.iter().enumerate().filter(is_other);
        let mut others: Vec<_> = places.map(|(warp, (pc, path))| (*pc, *path, warp)).collect();
        others.dedup_by_key(|(pc, path, _)| (*pc, *path));
        Some(Met {
            others,
            arrived: state.arrived,
            waiting: state.waiting,
            count_true: state.count_true,
            all_true: !state.any_false,
            pc: state.first_pc,
            path: state.first_path,
            behind: state.behind,
            whole_block: state.count.is_none(),
            aligned: state.aligned,
        })
    }

    /// The count of threads it waits for, how many have arrived, and where the first one did, if any has.
    pub(crate) fn open(&self) -> Option<(Option<u32>, u32, u32)> {
        let arrived = self.arrived.iter().map(|lanes| lanes.count_ones()).sum();
        self.used.then_some((self.count, arrived, self.first_pc))
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
        Arrival {
            warp,
            lanes,
            kind: BarrierKind::Sync,
            count,
            pred: lanes,
            pc: 7,
            aligned: true,
            path: Path::START,
            behind: vec![8],
        }
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
    fn a_barrier_is_used_in_one_way_and_once() {
        let mut barrier = BarrierState::default();
        let arrive = |warp| Arrival { kind: BarrierKind::Arrive, ..arrival(warp, u32::MAX, Some(96)) };
        assert_eq!(barrier.arrive(&arrive(0), 3), None);
        assert_eq!(barrier.arrive(&arrive(0), 3), Some(Complaint::ArrivesAgain { other_pc: 7 }));
        assert_eq!(barrier.arrive(&arrival(1, u32::MAX, Some(96)), 3), None);
        let counts = Arrival { kind: BarrierKind::CountTrue, ..arrival(2, u32::MAX, Some(96)) };
        let other = BarrierKind::Sync;
        assert_eq!(barrier.arrive(&counts, 3), Some(Complaint::KindDiffers { other, other_pc: 7 }));
        assert!(barrier.complete(&[u32::MAX; 3]).is_some() && barrier.open().is_none());
    }

    #[test]
    fn counts_are_multiples_of_a_warp_and_no_more_than_the_block_has() {
        assert_eq!(BadCount::of(0), Some(BadCount::Zero));
        assert_eq!(BadCount::of(48), Some(BadCount::NoMultiple(48)));
        assert_eq!(BadCount::in_block(64, 48), None, "the last warp counts whole");
        assert_eq!(BadCount::in_block(96, 64), Some(BadCount::TooLarge { count: 96, threads: 64 }));
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
