//! The happens-before relation of the threads of one block.
//!
//! Each warp has a clock that moves at every synchronisation, and knows how far it is ordered behind each other warp.
//! Within a warp, lanes are ordered by warp barriers. Barriers join the clocks of those who meet. Fences with strong
//! accesses hand clocks on as the memory model says: a fence before a strong write releases, a fence behind a strong
//! read of that place acquires. Where lanes of one warp differ, the warp is taken as a whole: that can hide a race
//! but never invents one.

use crate::exec::column::{LANES, each};

/// Places that clocks are released at; addresses share them by hashing, which can only hide a race.
const MEETINGS: usize = 256;

/// A time of a warp; every access is stamped with one. Zero is before everything.
pub(crate) type Time = u32;

/// The clocks of a block.
pub(crate) struct Clocks {
    warps: usize,
    /// The present time of each warp.
    now: Vec<Time>,
    /// For each warp, up to which time it is ordered behind every warp.
    seen: Vec<Vec<Time>>,
    lanes: Vec<LaneClocks>,
    /// What each warp had behind it at its last fence.
    fenced: Vec<Option<Vec<Time>>>,
    /// What each warp has read of others and acquires at its next fence.
    pending: Vec<Option<Vec<Time>>>,
    meetings: Vec<Option<Vec<Time>>>,
}

/// Order among the lanes of one warp.
struct LaneClocks {
    existing: u32,
    /// All lanes are ordered behind all accesses up to this time.
    all: Time,
    /// Further order between pairs of lanes, from barriers of some of them.
    pairs: Option<Box<[[Time; LANES]; LANES]>>,
}

impl Clocks {
    /// Clocks for warps with these lanes.
    pub(crate) fn new(existing: &[u32]) -> Self {
        let warps = existing.len();
        let lanes = existing.iter().map(|existing| LaneClocks { existing: *existing, all: 0, pairs: None });
        Self {
            warps,
            now: vec![1; warps],
            seen: vec![vec![0; warps]; warps],
            lanes: lanes.collect(),
            fenced: vec![None; warps],
            pending: vec![None; warps],
            meetings: Vec::new(),
        }
    }

    /// The time an access of a warp is stamped with.
    #[inline(always)]
    pub(crate) fn now(&self, warp: usize) -> Time {
        self.now[warp]
    }

    /// Whether an access of a thread at a time is ordered before what a lane does now.
    #[inline(always)]
    pub(crate) fn is_before(&self, thread: usize, time: Time, warp: usize, lane: usize) -> bool {
        let (other_warp, other_lane) = (thread / LANES, thread % LANES);
        if other_warp != warp {
            return time <= self.seen[warp][other_warp];
        }
        let lanes = &self.lanes[warp];
        other_lane == lane
            || time <= lanes.all
            || lanes.pairs.as_ref().is_some_and(|pairs| time <= pairs[lane][other_lane])
    }

    /// Lanes of a warp met.
    pub(crate) fn meet_lanes(&mut self, warp: usize, members: u32) {
        let now = self.now[warp];
        self.lanes[warp].meet(members, now);
        self.now[warp] += 1;
    }

    /// Threads met at a barrier: `arrived` were there, and those in `waiting` go on after all of them.
    pub(crate) fn meet(&mut self, arrived: &[u32], waiting: &[u32]) {
        let mut joined = vec![0; self.warps];
        for (warp, _) in arrived.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            join(&mut joined, &self.seen[warp]);
            joined[warp] = joined[warp].max(self.now[warp]);
        }
        for (warp, mask) in waiting.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            join(&mut self.seen[warp], &joined);
            self.lanes[warp].meet(*mask, self.now[warp]);
        }
        for (warp, _) in arrived.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            self.now[warp] += 1;
        }
    }

    /// A warp executed a fence.
    pub(crate) fn fence(&mut self, warp: usize) {
        if let Some(pending) = self.pending[warp].take() {
            self.acquire(warp, &pending);
        }
        let mut behind = self.seen[warp].clone();
        behind[warp] = self.now[warp];
        self.fenced[warp] = Some(behind);
        self.now[warp] += 1;
    }

    /// Whether a thread has executed a fence; without one strong accesses order nothing.
    pub(crate) fn has_fences(&self) -> bool {
        self.fenced.iter().any(Option::is_some)
    }

    /// A warp wrote a place strongly.
    pub(crate) fn release_at(&mut self, warp: usize, address: u64) {
        let Some(behind) = &self.fenced[warp] else { return };
        if self.meetings.is_empty() {
            self.meetings.resize(MEETINGS, None);
        }
        match &mut self.meetings[meeting(address)] {
            Some(meeting) => join(meeting, behind),
            empty => *empty = Some(behind.clone()),
        }
    }

    /// A warp read a place strongly; `at_once` if the read itself acquires.
    pub(crate) fn acquire_at(&mut self, warp: usize, address: u64, at_once: bool) {
        let Some(Some(found)) = self.meetings.get(meeting(address)) else { return };
        if at_once {
            let found = found.clone();
            self.acquire(warp, &found);
            return;
        }
        match &mut self.pending[warp] {
            Some(pending) => join(pending, found),
            empty => *empty = Some(found.clone()),
        }
    }

    fn acquire(&mut self, warp: usize, found: &[Time]) {
        join(&mut self.seen[warp], found);
        let own = found[warp];
        let lanes = &mut self.lanes[warp];
        lanes.all = lanes.all.max(own);
    }
}

impl LaneClocks {
    fn meet(&mut self, members: u32, now: Time) {
        if members & self.existing == self.existing {
            self.all = now;
            self.pairs = None;
            return;
        }
        let pairs = self.pairs.get_or_insert_with(|| Box::new([[0; LANES]; LANES]));
        let mut joined = [0; LANES];
        each(members, |lane| {
            joined.iter_mut().zip(&pairs[lane]).for_each(|(time, known)| *time = (*time).max(*known));
        });
        each(members, |lane| joined[lane] = now);
        each(members, |lane| pairs[lane] = joined);
    }
}

fn join(into: &mut [Time], from: &[Time]) {
    into.iter_mut().zip(from).for_each(|(time, other)| *time = (*time).max(*other));
}

fn meeting(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % MEETINGS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::column::FULL;

    #[test]
    fn a_barrier_orders_those_who_meet_and_nobody_else() {
        let mut clocks = Clocks::new(&[FULL; 3]);
        let time = clocks.now(0);
        clocks.meet(&[FULL, FULL, 0], &[FULL, FULL, 0]);
        assert!(clocks.is_before(3, time, 1, 7));
        assert!(!clocks.is_before(3, time, 2, 7));
        assert!(!clocks.is_before(3, clocks.now(0), 1, 7));
    }

    #[test]
    fn lanes_are_ordered_by_the_barriers_they_share() {
        let mut clocks = Clocks::new(&[FULL]);
        let time = clocks.now(0);
        clocks.meet_lanes(0, 0b0011);
        assert!(clocks.is_before(0, time, 0, 1) && !clocks.is_before(0, time, 0, 2));
        clocks.meet_lanes(0, 0b0110);
        assert!(clocks.is_before(0, time, 0, 2), "order is handed on");
        assert!(!clocks.is_before(2, clocks.now(0), 0, 0));
        clocks.meet_lanes(0, FULL);
        assert!(clocks.is_before(5, clocks.now(0) - 1, 0, 9));
    }

    #[test]
    fn a_flag_orders_only_with_fences() {
        let mut clocks = Clocks::new(&[FULL; 2]);
        let time = clocks.now(0);
        clocks.release_at(0, 64);
        clocks.acquire_at(1, 64, true);
        assert!(!clocks.is_before(0, time, 1, 0));
        clocks.fence(0);
        clocks.release_at(0, 64);
        clocks.acquire_at(1, 64, false);
        assert!(!clocks.is_before(0, time, 1, 0));
        clocks.fence(1);
        assert!(clocks.is_before(0, time, 1, 0));
    }
}
