//! A block of threads: its warps, its shared memory, its barriers.

use std::cell::Cell;

use super::barrier::{Arrival, BARRIERS, BarrierState, Met};
use super::block_progress::Progress;
use super::check::BlockRaces;
use super::cluster::Cluster;
use super::code_location::CodeSite;
use super::fault::ExecFault;
use super::finding::ExecFindingKind;
use super::launch::Launch;
use super::lowered_code::Why;
use super::mbarrier_table::MbarrierTable;
use super::memory::{Shared, SpanCache};
use super::outcome::Counters;
use super::path_tree::{Path, PathTree};
use super::preemption::{Preemption, Switch};
use super::random::Random;
use super::refusal::refusal;
use super::statistics::ExecutionCounts;
use super::undefined::OriginNotes;
use super::warp::{Frames, LaneGroup, MAX_POLLS, Pause, Warp};
use super::warp_register::{FULL, LANES, LaneOrder, each};
use super::warpgroup_order::WarpgroupOrder;

/// Steps a warp runs before the next one of the block gets a turn.
const QUANTUM: u64 = 1 << 16;

/// Polls of a block that waits and has waited since its last turn, until others run.
const NEXT_POLLS: u32 = 48;

/// What the warps of a block share.
pub(crate) struct Cta<'l> {
    pub(crate) launch: &'l Launch<'l>,
    pub(crate) index: [u32; 3],
    /// Its number in the grid.
    pub(crate) number: u64,
    /// The number of its cluster, and its rank there.
    pub(crate) place_in_cluster: (u64, usize),
    /// The cluster, while the block runs.
    pub(crate) cluster: Option<Box<Cluster>>,
    /// The rank of another block whose memory accesses reach now.
    pub(crate) visited: Option<usize>,
    pub(crate) shared: Shared,
    /// Where it appears among generic addresses.
    pub(crate) shared_window: u64,
    /// The number of the first thread in the grid.
    pub(crate) first_thread: u64,
    /// Where undefined bytes in shared memory come from.
    pub(crate) origins: OriginNotes,
    pub(crate) spans: SpanCache<'l>,
    /// Frames of warps that are done.
    pub(crate) spare_frames: Vec<Frames>,
    pub(crate) races: Option<BlockRaces<'l>>,
    pub(crate) mbarriers: MbarrierTable,
    pub(crate) warpgroups: WarpgroupOrder,
    pub(crate) counters: Counters,
    /// What is counted of each step. The host thread that runs the block lends it.
    pub(super) step_counts: Vec<ExecutionCounts>,
    /// Strong loads from global memory, and atomics there that change nothing, since the block last let others run.
    pub(crate) polls: u32,
    /// Whether strong reads that a thread repeats are looked for.
    pub(crate) looks_for_polls: bool,
    /// Picks where lanes of a warp part, as threads of sm_70 and later may.
    pub(crate) splits: Option<Random>,
    /// Picks the order in which lanes of an atomic reach memory.
    pub(super) atomic_orders: Option<Random>,
    /// Whether a seed picks the order of threads.
    pub(crate) seeded: bool,
    /// Picks where other threads run first. The host thread that runs the block lends it.
    pub(super) preemption: Option<Preemption>,
    /// What should run instead of the warp that was just preempted.
    pub(super) switch: Option<Switch>,
    /// Warps that could run at the start of this round.
    pub(super) ready_warps: usize,
    /// Whether any warp has run a step in this round. Steps count here and not instructions: one may take several.
    pub(crate) moved: bool,
    /// Instructions since the launch was last told, and updates by atomics beyond one for each of them: they take as long as instructions do.
    pub(crate) untold: u64,
    /// How often the block changed memory since the launch was last told.
    pub(crate) changes: u64,
    /// Whether a thread has exited since the launch was last told.
    pub(super) exited: bool,
    pub(super) barriers: Box<[BarrierState; BARRIERS]>,
    /// Those at which threads have arrived, as bits, and perhaps others.
    pub(super) used_barriers: u32,
    /// The lanes of each warp at the start, and those that have not exited.
    pub(super) existing: Vec<u32>,
    pub(super) live: Vec<u32>,
    /// Where the threads of each warp exited.
    pub(super) exits: Vec<WarpExits>,
    /// How many barriers of the whole block have completed.
    pub(super) barriers_met: u32,
    /// Barriers at which all threads have arrived and which none has left yet.
    pub(super) met: Vec<(usize, Met)>,
    /// The ways of the threads since the last barrier of the whole block.
    pub(crate) paths: PathTree,
    /// Whether threads were found to meet on different ways: what follows from that is not told.
    pub(super) is_astray: Cell<bool>,
}

/// Where a thread exited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) pc: u32,
    /// Its way since the last barrier of the whole block.
    pub(super) path: Path,
    /// How many barriers of the whole block had completed.
    pub(super) barriers_met: u32,
}

/// Where the threads of a warp exited.
#[derive(Clone, Default)]
pub(super) struct WarpExits {
    /// All of them, unless the lanes are told apart.
    all: Exit,
    lanes: Option<Box<[Exit; LANES]>>,
}

impl WarpExits {
    fn set(&mut self, mask: u32, exit: Exit) {
        if mask == FULL {
            *self = Self { all: exit, lanes: None };
            return;
        }
        let lanes = self.lanes.get_or_insert_with(|| Box::new([self.all; LANES]));
        each(mask, |lane| lanes[lane] = exit);
    }

    pub(super) fn of(&self, lane: usize) -> Exit {
        self.lanes.as_ref().map_or(self.all, |lanes| lanes[lane])
    }
}

/// A block that runs.
pub(crate) struct Block<'l> {
    pub(super) cta: Box<Cta<'l>>,
    pub(super) warps: Vec<Warp>,
    pub(super) random: Option<Random>,
    /// For how many rounds others go first, for each warp: those that were preempted.
    pub(super) held: Vec<u32>,
    /// In which order warps get their turns.
    pub(super) order: Vec<usize>,
    /// How often memory had been changed when all threads were last found to repeat what they do.
    pub(super) repeats_since: u64,
}

impl<'l> Block<'l> {
    /// Runs about `budget` instructions, or to the end.
    pub(crate) fn run(&mut self, budget: u64) -> Result<Progress, ExecFault> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..self.warps.len());
        let progress = self.run_rounds(budget, &mut order);
        self.order = order;
        progress
    }

    fn run_rounds(&mut self, budget: u64, order: &mut [usize]) -> Result<Progress, ExecFault> {
        let start = self.cta.counters.warp_instructions;
        let mut told = start;
        self.release_from_cluster();
        while !self.cta.launch.log.is_stopped() {
            let released = self.run_round(order)? | self.release_from_cluster();
            let preempted = std::mem::take(&mut self.cta.switch) == Some(Switch::Block);
            if self.warps.iter().all(|warp| warp.live == 0) {
                self.cta.counters.blocks += 1;
                self.cta.note_open_barriers();
                self.cta.tell_missed_products();
                self.cta.report_unfinished_copies();
                if self.cta.is_clustered() {
                    self.cta.end_in_cluster();
                }
                if let Some(progress) = self.cta.launch.options.progress {
                    progress.advance();
                }
                self.cta.launch.note_exit();
                return Ok(Progress::Done);
            }
            if !self.cta.moved && !released && !preempted {
                if self.waits_for_cluster() {
                    return Ok(Progress::Stuck);
                }
                return Err(self.cta.report_deadlock(&self.warps));
            }
            let ran = self.cta.counters.warp_instructions;
            self.cta.untold += ran - std::mem::replace(&mut told, ran);
            let exited = std::mem::take(&mut self.cta.exited);
            if self.cta.launch.stalls(&mut self.cta.untold, exited) {
                let limit = self.cta.launch.options.stall_limit;
                return Err(self.no_end(ExecFindingKind::Stalled(limit)));
            }
            if self.waits_for_cluster() && self.only_waits_for_phases() {
                return Ok(Progress::Stuck);
            }
            if !self.cta.mbarriers.is_empty() && self.only_waits_for_phases() {
                return Err(self.cta.report_deadlock(&self.warps));
            }
            let looks = self.cta.looks_for_polls || self.cta.launch.options.finds_endless_waits();
            if looks && self.only_repeats() {
                self.start_polls();
                return Ok(Progress::Repeating);
            }
            if preempted {
                return Ok(Progress::Preempted);
            }
            if self.cta.counters.warp_instructions - start >= budget
                || self.cta.polls > 0 && self.is_waiting_for_others()
            {
                self.start_polls();
                return Ok(Progress::Paused);
            }
        }
        Ok(Progress::Done)
    }

    /// Lets each warp run for a while. Whether threads went on that had waited at a barrier.
    fn run_round(&mut self, order: &mut [usize]) -> Result<bool, ExecFault> {
        self.cta.moved = false;
        if let Some(random) = &mut self.random {
            random.shuffle(order);
            self.cta.ready_warps = self.warps.iter().filter(|warp| warp.ready_thread().is_some()).count();
        }
        let mut released = false;
        for at in order.iter().copied() {
            if self.warps[at].live == 0 {
                continue;
            }
            if self.held[at] > 0 && self.cta.has_other_warps() {
                self.held[at] -= 1;
                // It could run: this is no deadlock.
                self.cta.moved = true;
                continue;
            }
            self.held[at] = 0;
            let quantum = self.quantum();
            let pause = self.warps[at].run(&mut self.cta, quantum)?;
            debug_assert!(pause != Pause::Finished || self.warps[at].live == 0);
            released |= self.release();
            match self.cta.switch {
                Some(Switch::Block) => break,
                Some(Switch::Warp) => self.held[at] = self.cta.rounds_held(),
                _ => {}
            }
            self.cta.switch = None;
        }
        Ok(released)
    }

    /// Takes over what decides where threads are preempted, and what is counted of each step.
    pub(crate) fn lend(&mut self, preemption: Option<Preemption>, counts: &mut Vec<ExecutionCounts>) {
        (self.cta.preemption, self.cta.step_counts) = (preemption, std::mem::take(counts));
    }

    /// Gives both back.
    pub(crate) fn give_back(&mut self, counts: &mut Vec<ExecutionCounts>) -> Option<Preemption> {
        *counts = std::mem::take(&mut self.cta.step_counts);
        self.cta.preemption.take()
    }

    /// What was executed; the count starts again.
    pub(crate) fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.cta.counters)
    }

    /// How often memory was changed; the count starts again.
    pub(crate) fn take_changes(&mut self) -> u64 {
        std::mem::take(&mut self.cta.changes)
    }

    /// Whether no thread can go on until memory changes.
    fn only_repeats(&mut self) -> bool {
        let (changes, mbarrier_changes) = (self.cta.all_changes(), self.cta.mbarriers.changes());
        self.repeats_since = changes;
        // Threads that all wait at barriers are a deadlock.
        self.warps.iter().any(|warp| warp.ready_thread().is_some())
            && self.warps.iter().all(|warp| warp.only_repeats(changes, mbarrier_changes))
    }

    /// Whether strong reads that a thread repeats let others run at once, from here on.
    pub(crate) fn look_for_polls(&mut self, looks: bool) {
        self.cta.looks_for_polls = looks;
    }

    /// Whether all threads wait for each other or for phases of `mbarrier` objects, which no thread is left to complete.
    fn only_waits_for_phases(&self) -> bool {
        let changes = self.cta.mbarriers.changes();
        self.warps.iter().all(|warp| warp.only_waits(changes))
    }

    /// Reports that the kernel does not end, in a thread that could run.
    pub(crate) fn no_end(&self, kind: ExecFindingKind) -> ExecFault {
        let ready = |warp: &Warp| warp.ready_thread().map(|(lane, pc)| (warp.index, lane, pc));
        let (warp, lane, pc) = self.warps.iter().find_map(ready).unwrap_or_default();
        let fault = kind.fault().unwrap_or(ExecFault::LaunchTimeout);
        self.cta.report(warp, lane, pc, kind);
        fault
    }

    /// Whether the block polls global memory, probably for another block.
    fn is_waiting_for_others(&self) -> bool {
        self.cta.polls > MAX_POLLS
    }

    /// Starts to count polls again. A block that only waited since its last turn looks fewer times in the next one.
    fn start_polls(&mut self) {
        let looks = if self.cta.changes == 0 { NEXT_POLLS } else { MAX_POLLS };
        self.cta.polls = MAX_POLLS - looks;
    }

    /// Steps until another warp runs.
    fn quantum(&mut self) -> u64 {
        match &mut self.random {
            None => QUANTUM,
            Some(random) => [1, 5, 32, 200, 4096, QUANTUM][random.below(6) as usize],
        }
    }

    /// Lets those go on whose barriers are complete.
    fn release(&mut self) -> bool {
        let met = std::mem::take(&mut self.cta.met);
        for (number, met) in &met {
            for warp in &mut self.warps {
                warp.release(&self.cta, *number, met);
            }
        }
        !met.is_empty()
    }
}

impl<'l> Cta<'l> {
    /// The order in which lanes of the next atomic reach memory: lowest first without a seed.
    pub(crate) fn atomic_order(&mut self) -> LaneOrder {
        self.atomic_orders.as_mut().map_or(LaneOrder::default(), |random| LaneOrder::of(random.next() >> 20))
    }

    /// How often memory was changed in the whole launch, as far as this block knows.
    pub(crate) fn all_changes(&self) -> u64 {
        self.launch.changes() + self.changes
    }

    /// What should run before the step at `pc`, instead of the lanes that are about to execute it. `grid`: threads of other blocks can see
    /// the step; `lanes`: other lanes of the warp can run.
    pub(crate) fn preempt(&mut self, pc: u32, reads: bool, grid: bool, lanes: bool) -> Option<Switch> {
        let others = grid && self.launch.shape.blocks() > 1;
        let possible = [others, self.has_other_warps(), lanes && self.splits.is_some()];
        self.switch = self.preemption.as_mut()?.at(pc, reads, possible);
        self.switch
    }

    /// For how many rounds the warp that was just preempted lets others run.
    fn rounds_held(&self) -> u32 {
        1 + self.preemption.as_ref().map_or(0, Preemption::held)
    }

    /// Whether several warps could run at the start of the round.
    pub(crate) fn has_other_warps(&self) -> bool {
        self.ready_warps > 1
    }

    /// The lanes of a warp at the start.
    pub(crate) fn lanes(&self, warp: usize) -> u32 {
        self.existing.get(warp).copied().unwrap_or(0)
    }

    /// The index of a thread in the block.
    pub(crate) fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        let number = (warp * LANES + lane) as u32;
        let [x, y, _] = self.launch.shape.block;
        [number % x, number / x % y, number / x / y]
    }

    /// Keeps a finding about a thread.
    pub(crate) fn report(&self, warp: usize, lane: usize, pc: u32, kind: ExecFindingKind) {
        self.report_pair(warp, lane, (pc, pc), kind);
    }

    fn report_pair(&self, warp: usize, lane: usize, steps: (u32, u32), kind: ExecFindingKind) {
        let thread = self.thread(warp, lane);
        self.launch.log.find(self.launch.code, steps, kind, false, |site| site.in_thread(self.index, thread));
    }

    /// Keeps a note about a thread.
    pub(crate) fn report_note(&self, warp: usize, lane: usize, pc: u32, kind: ExecFindingKind) {
        let thread = self.thread(warp, lane);
        let log = self.launch.log;
        log.find(self.launch.code, (pc, pc), kind, true, |site| site.in_thread(self.index, thread));
    }

    /// Words for an instruction that is not run.
    pub(crate) fn unsupported(&self, pc: u32, why: Why) -> ExecFindingKind {
        let code = self.launch.code;
        refusal(&CodeSite::of(code, pc), why, &code.module)
    }

    /// Threads arrive at a barrier.
    pub(crate) fn arrive(&mut self, number: usize, arrival: &Arrival) {
        if let Some(races) = self.races.as_mut().filter(|_| !arrival.waits()) {
            races.clocks.arrive(number, arrival.warp, arrival.lanes);
        }
        self.used_barriers |= 1 << number;
        let complaint = self.barriers[number].arrive(arrival, self.existing.len());
        if let Some(complaint) = complaint.filter(|complaint| self.is_founded(arrival, *complaint)) {
            self.complain(number, arrival, complaint);
        }
        self.check_barrier(number);
    }

    /// Threads of a warp have exited.
    pub(crate) fn leave(&mut self, warp: usize, live: u32, lane_group: &LaneGroup) {
        self.live[warp] = live;
        let LaneGroup { mask, pc, path, .. } = *lane_group;
        let exit = Exit { pc, path, barriers_met: self.barriers_met };
        self.exits[warp].set(mask, exit);
        if let Some(races) = &mut self.races {
            races.clocks.leave(warp, live);
        }
        self.exited = true;
        if let Some(cluster) = &mut self.cluster {
            cluster.leave((self.place_in_cluster.1, warp), live);
            self.changes += 1;
        }
        each(self.used_barriers, |number| self.check_barrier(number));
    }

    #[inline]
    fn check_barrier(&mut self, number: usize) {
        let barrier = &mut self.barriers[number];
        let Some(met) = barrier.is_used().then(|| barrier.complete(&self.live)).flatten() else { return };
        if let Some(races) = &mut self.races {
            let whole = self.live.iter().zip(&met.waiting).all(|(live, here)| live & !here == 0);
            races.clocks.meet(number, &met.waiting, whole);
        }
        let checks = self.launch.options.checks;
        if checks.barriers && met.whole_block {
            self.tell_other_ways(number, &met);
            self.tell_absent(number, &met);
        }
        if met.whole_block {
            self.barriers_met += 1;
            self.paths.restart();
        }
        self.met.push((number, met));
    }
}
