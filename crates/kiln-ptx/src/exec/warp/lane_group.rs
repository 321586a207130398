//! Lane groups: lanes of a warp that are at the same place, and which of them runs.

use super::frame::FrameId;
use super::{FAILED_LOCKS, MAX_POLLS, PATIENCE, TURN, Warp};
use crate::exec::block::Cta;
use crate::exec::lowered_code::{Code, Op, Step};
use crate::exec::mbarrier_table::PhaseWait;
use crate::exec::memory::generic_address::Place;
use crate::exec::path_tree::Path;
use crate::exec::preemption::Switch;
use crate::exec::warp_register::first_lane;

/// Lanes at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneGroup {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) frame: FrameId,
    pub(crate) state: State,
    /// The step of the warp at which it last started to run.
    pub(crate) last_run: u64,
    /// Its way since the last barrier of the whole block.
    pub(crate) path: Path,
    /// Set when it was found to do the same again and again until memory changes: how often memory had changed until then.
    pub(crate) repeats: Option<u64>,
    /// The wait for a phase that failed in all its lanes, and that they repeat until it holds.
    pub(crate) phase_wait: Option<PhaseWait>,
    /// Of a group that waits at a collective: the lanes that its mask names and that came to the instruction with it, and with another mask.
    pub(crate) unlike: u32,
}

impl LaneGroup {
    /// Whether it waits for a phase of an `mbarrier` object; `changes`: how often objects of the block were changed.
    pub(super) fn waits_for_phase(&self, changes: u64) -> bool {
        self.phase_wait.is_some_and(|wait| wait.changes == changes)
    }
}

/// Whether a lane group can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// It waits at a collective for other lanes of the warp.
    Collective,
    /// It waits at a barrier of the block.
    Barrier(u8),
    /// It waits at the barrier of the cluster.
    Cluster,
}

impl Warp {
    /// The lane group to run next, after those at the same place are joined.
    pub(super) fn pick(&mut self, cta: &Cta<'_>) -> Option<usize> {
        self.join_ready(cta);
        let code = Self::code(cta);
        let ready = |(_, lane_group): &(usize, &LaneGroup)| lane_group.state == State::Ready;
        let passed_over = std::mem::take(&mut self.passed_over);
        let fair = self.lane_groups.len() > 1 && (passed_over || self.is_turn_due());
        let all = self.lane_groups.iter().enumerate().filter(ready);
        let (at, _) = match fair {
            true => all.min_by_key(|(_, lane_group)| lane_group.last_run)?,
            false => all.min_by_key(|(_, lane_group)| self.key(code, lane_group))?,
        };
        let others = self.lane_groups.iter().enumerate().filter(ready).filter(|(other, _)| *other != at);
        self.threshold = others.map(|(_, lane_group)| self.key(code, lane_group)).min().unwrap_or(u64::MAX);
        self.lane_groups[at].last_run = self.steps;
        self.slice = (self.steps, fair);
        self.turn = TURN;
        if self.lane_groups.len() > 1 {
            self.watch.follow(&self.lane_groups[at], self.steps);
        }
        Some(at)
    }

    /// Whether another lane group should run than the present one.
    #[inline]
    pub(super) fn must_switch(&self, code: &Code, at: usize) -> bool {
        if self.threshold == u64::MAX {
            return false;
        }
        let (start, out_of_order) = self.slice;
        let run = self.steps - start;
        if out_of_order {
            let lane_group = &self.lane_groups[at];
            let meets = |other: &LaneGroup| other.pc == lane_group.pc && other.frame == lane_group.frame;
            return run > self.turn || self.lane_groups.iter().filter(|other| meets(other)).count() > 1;
        }
        run > PATIENCE || self.key(code, &self.lane_groups[at]) >= self.threshold
    }

    /// Splits off the lanes of `mask` as a separate lane group at another place.
    pub(super) fn split(&mut self, at: usize, mask: u32, pc: u32) {
        let lane_group = self.lane_groups[at];
        self.lane_groups[at].mask &= !mask;
        self.lane_groups[at].repeats = None;
        self.lane_groups[at].phase_wait = None;
        self.lane_groups.push(LaneGroup { mask, pc, repeats: None, phase_wait: None, ..lane_group });
    }

    /// Lets some lanes of a lane group go ahead of the others, now and then.
    ///
    /// Lanes of one warp run independently from sm_70 on. What a kernel does without a barrier of the warp must not depend on their order.
    pub(super) fn part(&mut self, cta: &mut Cta<'_>, at: usize) {
        let Some(random) = cta.splits.as_mut().filter(|_| self.splits > 0) else { return };
        let LaneGroup { mask, pc, .. } = self.lane_groups[at];
        if mask.count_ones() < 2 || random.below(8) != 0 {
            return;
        }
        let picked = match random.below(3) {
            0 => mask & (random.next() >> 16) as u32,
            1 => mask & (u32::MAX << (1 + random.below(31))),
            _ => mask & 0x5555_5555,
        };
        if picked == 0 || picked == mask {
            return;
        }
        let behind = if random.below(2) == 0 { picked } else { mask & !picked };
        self.turn = 1 + random.below(48);
        self.splits -= 1;
        self.split(at, behind, pc);
        self.slice = (self.steps, true);
        self.threshold = 0;
        self.watch.restart(self.steps);
    }

    /// Lets other threads run before a strong access, now and then; see [`Preemption`](crate::exec::preemption::Preemption).
    pub(super) fn preempt(&mut self, cta: &mut Cta<'_>, at: usize, step: &Step) -> Option<Switch> {
        let place = step.op.synchronises_at()?;
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let lanes = mask & self.frames[frame].test(step.guard);
        if lanes == 0 {
            return None;
        }
        let reads = self.only_reads(cta, frame, &step.op, lanes);
        // Lanes that were found to repeat a read let others run already.
        let let_others = self.lane_groups[at].repeats.is_some();
        let again = std::mem::replace(&mut self.last_strong, pc) == pc || let_others;
        // A compare-and-swap that failed most likely fails again: one that gives up gets that far while another thread holds the lock.
        let fails = matches!(step.op, Op::Atomic(_)) && !self.last_changed;
        if again && (reads || fails) {
            return self.poll(cta);
        }
        self.polls = 0;
        let others = self.has_other_lanes(at);
        let switch = cta.preempt(pc, reads, place != Place::Shared || cta.is_clustered(), others);
        if switch == Some(Switch::Lanes) {
            self.pass_over(at);
        }
        if switch.is_some() {
            self.last_strong = u32::MAX;
        }
        switch
    }

    /// Whether other lanes of the warp can run: those that wait at a barrier cannot.
    pub(super) fn has_other_lanes(&self, at: usize) -> bool {
        let ready = |(other, group): (usize, &LaneGroup)| other != at && group.state == State::Ready;
        self.lane_groups.len() > 1 && self.lane_groups.iter().enumerate().any(ready)
    }

    /// A loop that waits: it reads the same again. Other warps run after some rounds; other blocks do anyway.
    fn poll(&mut self, cta: &Cta<'_>) -> Option<Switch> {
        self.polls += 1;
        let lets_others = self.polls > MAX_POLLS && cta.has_other_warps();
        if lets_others {
            self.polls = 0;
        }
        lets_others.then_some(Switch::Warp)
    }

    /// Lets other lanes of the warp run first, if these failed to take a lock or wait for a flag: one of the others may hold or set it. A lock that is never released is left to
    /// the search for endless loops.
    #[cold]
    pub(super) fn lets_lanes_run(&mut self, cta: &Cta<'_>, at: usize) -> bool {
        if cta.launch.code.lock_spins.binary_search(&self.lane_groups[at].pc).is_err() {
            return false;
        }
        let changes = cta.all_changes();
        let (last, times) = self.failed_locks;
        let times = if last == changes { times + 1 } else { 0 };
        self.failed_locks = (changes, times);
        let lets = FAILED_LOCKS.contains(&times);
        if lets {
            self.pass_over(at);
        }
        lets
    }

    /// Lets the lane group run next that waited longest.
    pub(super) fn pass_over(&mut self, at: usize) {
        self.lane_groups[at].last_run = self.steps;
        self.passed_over = true;
    }

    /// Whether a strong access changes nothing: a load, or an atomic such as `atomicAdd(p, 0)`.
    fn only_reads(&self, cta: &Cta<'_>, frame: FrameId, op: &Op, lanes: u32) -> bool {
        let Op::Atomic(atomic) = op else { return matches!(op, Op::Load(_)) };
        let value = |source| self.frames[frame].column(source, &cta.launch.constants)[first_lane(lanes)];
        let (b, c) = (value(atomic.b), value(atomic.c));
        [0, 1, u64::MAX >> (64 - 8 * atomic.bytes)].iter().all(|old| (atomic.update)(*old, b, c) == *old)
    }

    /// Whether a ready lane group has been passed over for long.
    fn is_turn_due(&self) -> bool {
        let starved = |lane_group: &LaneGroup| {
            lane_group.state == State::Ready && self.steps - lane_group.last_run > PATIENCE
        };
        !self.slice.1 && self.lane_groups.iter().any(starved)
    }

    /// Who runs first: called functions before their callers, then by rank.
    fn key(&self, code: &Code, lane_group: &LaneGroup) -> u64 {
        let depth = self.frames[lane_group.frame].depth;
        let rank = code.ranks.get(lane_group.pc as usize).copied().unwrap_or(u32::MAX);
        u64::from(u32::MAX - depth) << 32 | u64::from(rank)
    }

    fn join_ready(&mut self, cta: &Cta<'_>) {
        if self.lane_groups.len() < 2 {
            return;
        }
        let mut at = 0;
        while at < self.lane_groups.len() {
            let lane_group = self.lane_groups[at];
            let same = |other: &LaneGroup| {
                other.state == State::Ready && other.pc == lane_group.pc && other.frame == lane_group.frame
            };
            if lane_group.state == State::Ready {
                let mut other = at + 1;
                while other < self.lane_groups.len() {
                    let paths = [self.lane_groups[at].path, self.lane_groups[other].path];
                    let is_there = same(&self.lane_groups[other]);
                    match is_there.then(|| cta.joined(paths, lane_group.pc)).flatten() {
                        Some(path) => {
                            self.lane_groups[at].mask |= self.lane_groups[other].mask;
                            self.lane_groups[at].repeats = None;
                            self.lane_groups[at].phase_wait = None;
                            self.lane_groups[at].path = path;
                            self.lane_groups.swap_remove(other);
                        }
                        None => other += 1,
                    }
                }
            }
            at += 1;
        }
    }
}

impl Op {
    /// Whether other threads can see the step, or it them.
    pub(super) fn reaches_others(&self) -> bool {
        let is_common =
            |place: Place| matches!(place, Place::Shared | Place::Cluster | Place::Global | Place::Generic);
        match self {
            Self::Load(load) => is_common(load.place),
            Self::Store(store) => is_common(store.place),
            Self::Atomic(_) | Self::CopyAsync(_) | Self::Mbarrier(_) => true,
            _ => false,
        }
    }

    /// The memory that a strong access reaches.
    fn synchronises_at(&self) -> Option<Place> {
        let (place, strong) = match self {
            Self::Load(load) => (load.place, load.strength.strong),
            Self::Store(store) => (store.place, store.strength.strong),
            Self::Atomic(atomic) => (atomic.place, true),
            _ => return None,
        };
        strong.then_some(place)
    }
}
