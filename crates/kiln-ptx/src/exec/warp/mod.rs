//! A warp: up to 32 threads that execute one instruction at a time, diverged lanes in turn.
//!
//! Lanes that agree form a lane group. A branch they disagree on splits it; lane groups at the same place join again. The
//! lane group of lowest rank runs, see [`Code::ranks`], which brings lanes together as early as the code allows. Since
//! lanes may also wait for each other (a lock taken by a neighbour), a lane group that was passed over for long gets a
//! turn out of order.

mod absent_lanes;
mod access;
mod barrier;
mod bulk_copy;
mod call;
mod cluster;
mod control;
mod endless_loop;
mod execute;
mod frame;
mod generic_address_owner;
mod global;
mod kept_state;
mod lane_group;
mod matrix;
mod mbarrier;
mod mbarrier_end;
mod memory;
mod operand_forms;
mod proxy_hooks;
mod race_hooks;
mod register;
mod repeated_poll;
mod row_access;
mod span_content;
mod special_registers;
mod statistics_hooks;
mod straight_line;
mod surface;
mod system_calls;
mod tensor_copy;
mod tensor_map;
mod tensor_rules;
mod texture;
mod tile;
mod undefined;
mod undefined_alternatives;
mod undefined_branch;
mod undefined_memory;
mod warp_primitives;
mod warpgroup;
mod warpgroup_registers;
mod word_steps;

use super::block::Cta;
use super::check::ValueRule;
use super::fault::ExecFault;
use super::finding::ExecFindingKind;
use super::lowered_code::Code;
use super::memory::Local;
use super::path_tree::Path;
use super::preemption::Switch;
use super::undefined::OriginNotes;
use super::warp_register::{Column, LANES};
use endless_loop::Watch;
use frame::ENTRY;
pub(crate) use frame::Frames;
pub(crate) use lane_group::{LaneGroup, State};
pub(crate) use memory::MAX_POLLS;
pub(crate) use register::Register;
use repeated_poll::RepeatedPoll;
use warpgroup_registers::WarpgroupRegisters;

/// Steps after which a lane group that was passed over gets a turn.
const PATIENCE: u64 = 8192;
/// Steps of such a turn.
const TURN: u64 = 1024;
/// After how many failures to take a lock, with memory unchanged, lanes let others of their warp run, and until how many.
const FAILED_LOCKS: std::ops::Range<u32> = 16..256;
/// How often lanes of a warp part without a branch. It has an end, so that a loop that waits comes to repeat itself.
const SPLITS: u32 = 64;

/// A warp.
#[derive(Default)]
pub(crate) struct Warp {
    pub(crate) index: usize,
    /// The lanes that have not exited.
    pub(crate) live: u32,
    pub(crate) lane_groups: Vec<LaneGroup>,
    frames: Frames,
    /// Where the next result is computed.
    result: Box<Column>,
    /// Operands that all lanes share, in the first lane.
    scalars: Box<[Column; 4]>,
    local: Local,
    /// Where undefined bytes on the stacks come from.
    local_origins: OriginNotes,
    /// Instructions run so far.
    steps: u64,
    /// Where the present lane group must be passed over: the lowest key among the others that could run.
    threshold: u64,
    /// When the present lane group started to run, and whether out of order.
    slice: (u64, bool),
    /// Steps of its turn when it runs out of order.
    turn: u64,
    /// Whether the lane group that waited longest runs next.
    passed_over: bool,
    /// The strong access it executed last.
    last_strong: u32,
    /// Whether its last atomic changed memory.
    last_changed: bool,
    /// How often lanes failed to take a lock since memory changed, and how often it had been changed.
    failed_locks: (u64, u32),
    /// How often it executed that access in a row, if it only read.
    polls: u32,
    /// How often its lanes may still part without a branch.
    splits: u32,
    /// Registers of products that are done later.
    products: WarpgroupRegisters,
    /// Finds loops that cannot end.
    watch: Watch,
    /// Finds strong reads that are repeated.
    poll: RepeatedPoll,
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All its threads have exited.
    Finished,
    /// All its threads wait.
    Blocked,
    /// It used up its steps.
    Spent,
}

/// Where a lane group goes on.
enum Flow {
    Next,
    Jump(u32),
    /// The place of the lane group is set already.
    Stay,
    /// The lane groups have changed.
    Switch,
    /// Others should run first.
    Yield,
    /// Others should run first, and then the same step again.
    Again,
}

/// What ends the launch: a finding in a lane.
pub(crate) struct Trouble {
    lane: usize,
    kind: ExecFindingKind,
}

impl Trouble {
    fn new(lane: usize, kind: ExecFindingKind) -> Box<Self> {
        Box::new(Self { lane, kind })
    }
}

type Done<T> = Result<T, Box<Trouble>>;

impl Warp {
    /// Starts the warp of a block that starts.
    pub(crate) fn start(&mut self, index: usize, cta: &Cta<'_>) {
        let (code, lanes) = (cta.launch.code, cta.lanes(index));
        let tracked =
            cta.launch.options.checks.uninitialised && cta.launch.rules.has(ValueRule::LocalContents);
        (self.index, self.live) = (index, lanes);
        self.local = Local::new(tracked);
        self.local.reserve(code.functions.first().map_or(0, |entry| entry.frame_bytes));
        let gaps = code.functions.first().map_or(&[][..], |entry| &entry.gaps);
        gaps.iter().for_each(|gap| self.local.define(gap.start, gap.end - gap.start, lanes));
        self.local_origins.clear();
        self.frames = Frames::default();
        let start = code.functions.first().map_or(0, |f| f.start);
        self.lane_groups.clear();
        self.lane_groups.push(LaneGroup {
            mask: lanes,
            pc: start,
            frame: ENTRY,
            state: State::Ready,
            last_run: 0,
            path: Path::START,
            repeats: None,
            phase_wait: None,
            unlike: 0,
        });
        (self.steps, self.threshold, self.slice, self.turn) = (0, 0, (0, false), TURN);
        (self.passed_over, self.last_strong, self.last_changed) = (false, u32::MAX, false);
        (self.failed_locks, self.polls, self.splits) = ((0, 0), 0, SPLITS);
        self.products = WarpgroupRegisters::default();
        self.watch = Watch::default();
        self.poll.restart();
    }

    /// Enters the kernel when the warp runs for the first time. Registers of warps that are done are used again: they are still in the cache.
    fn enter(&mut self, cta: &mut Cta<'_>) {
        self.frames = cta.spare_frames.pop().unwrap_or_default();
        self.frames.clear();
        let entry = self.frames.enter(cta.launch.code, 0, None, 0, self.live, 0);
        self.mark_unassigned(cta, entry, 0, self.live);
    }

    /// Runs until all threads wait or have exited, or `budget` steps are used up.
    pub(crate) fn run(&mut self, cta: &mut Cta<'_>, budget: u64) -> Result<Pause, ExecFault> {
        let mut left = budget;
        if self.frames.is_empty() {
            self.enter(cta);
        }
        let pause = self.run_lane_groups(cta, &mut left);
        cta.moved |= left < budget;
        if let Ok(Pause::Finished) = pause {
            cta.spare_frames.push(std::mem::take(&mut self.frames));
        }
        pause
    }

    fn run_lane_groups(&mut self, cta: &mut Cta<'_>, left: &mut u64) -> Result<Pause, ExecFault> {
        let limit = cta.launch.options.step_limit;
        while let Some(at) = self.pick(cta) {
            if self.steps >= limit {
                let lane = self.lane_groups[at].mask.trailing_zeros() as usize;
                return Err(self.fail(cta, at, &Trouble { lane, kind: ExecFindingKind::StepLimit(limit) }));
            }
            let outcome = self.run_lane_group(cta, at, left);
            match outcome {
                Ok(false) => {}
                Ok(true) => return Ok(Pause::Spent),
                Err(trouble) => {
                    cta.visit(None);
                    return Err(self.fail(cta, at, &trouble));
                }
            }
        }
        Ok(if self.live == 0 { Pause::Finished } else { Pause::Blocked })
    }

    /// Runs one lane group until another should run; true when the steps are used up.
    fn run_lane_group(&mut self, cta: &mut Cta<'_>, at: usize, left: &mut u64) -> Done<bool> {
        let (code, limit) = (cta.launch.code, cta.launch.options.step_limit);
        let is_counted = cta.launch.options.coverage.is_some() || cta.launch.options.statistics.is_some();
        let mut stop = limit.min(self.watch.next);
        let only_computes = !cta.seeded && !is_counted && !cta.launch.options.portable;
        loop {
            if *left == 0 {
                return Ok(true);
            }
            let in_line = only_computes && self.lane_groups.len() == 1 && !self.has_undefined(at);
            if in_line && self.compute(cta, at, stop, left, false) && *left == 0 {
                return Ok(true);
            }
            let LaneGroup { pc, frame, .. } = self.lane_groups[at];
            let Some(step) = code.steps.get(pc as usize) else { return Ok(true) };
            if !in_line {
                self.frames[frame].settle(step);
            }
            let seen = cta.seeded && step.op.reaches_others();
            if seen && let Some(switch) = self.preempt(cta, at, step) {
                *left -= 1;
                return Ok(switch != Switch::Lanes);
            }
            if self.steps >= stop {
                if self.steps >= limit {
                    return Ok(false);
                }
                self.keep_state(cta, at);
                stop = limit.min(self.watch.next);
            } else if pc == self.watch.pc {
                self.compare_state(cta, at)?;
            }
            if in_line && pc == self.watch.pc && self.compute(cta, at, stop, left, true) {
                continue;
            }
            *left -= 1;
            if seen {
                self.part(cta, at);
            }
            let mask = self.lane_groups[at].mask;
            let marked = self.frames[frame].undefined.any();
            if marked {
                self.use_predicate(cta, at, step.guard, mask);
            }
            let lanes = mask & self.frames[frame].test(step.guard);
            if step.first {
                self.steps += 1;
                cta.counters.warp_instructions += 1;
                cta.counters.thread_instructions += u64::from(lanes.count_ones());
            }
            if is_counted {
                self.count_step(cta, at, step, (mask, lanes));
            }
            self.frames[frame].settle(step);
            if step.watched && lanes != 0 {
                self.watch_products(cta, at, step);
            }
            let flow = match lanes {
                0 => Flow::Next,
                _ if marked => self.execute_undefined(cta, at, step, lanes)?,
                _ => self.execute(cta, at, step, lanes)?,
            };
            if let Some(is_spent) = self.go_on(at, pc, flow) {
                return Ok(is_spent);
            }
            if self.lane_groups.len() > 1 && self.must_switch(code, at) {
                return Ok(false);
            }
        }
    }

    /// Moves a lane group on behind a step; `Some` if another should run, true if other warps should.
    #[inline(always)]
    fn go_on(&mut self, at: usize, pc: u32, flow: Flow) -> Option<bool> {
        match flow {
            Flow::Next => self.lane_groups[at].pc = pc + 1,
            Flow::Jump(target) => self.lane_groups[at].pc = target,
            Flow::Stay => {}
            Flow::Switch => return Some(false),
            Flow::Again => return Some(true),
            Flow::Yield => {
                self.lane_groups[at].pc = pc + 1;
                return Some(true);
            }
        }
        None
    }

    /// Reports what ends the launch.
    fn fail(&self, cta: &mut Cta<'_>, at: usize, trouble: &Trouble) -> ExecFault {
        let pc = self.lane_groups.get(at).map_or(0, |lane_group| lane_group.pc);
        let mut kind = trouble.kind.clone();
        self.explain_misaligned_row(cta, at, &mut kind);
        cta.report(self.index, trouble.lane, pc, kind);
        trouble.kind.fault().unwrap_or(ExecFault::LaunchFailed)
    }

    /// Whether a register of the frame of a lane group has undefined bits.
    fn has_undefined(&self, at: usize) -> bool {
        self.frames[self.lane_groups[at].frame].undefined.any()
    }

    /// The first lane of a lane group.
    fn first_lane(&self, at: usize) -> usize {
        self.lane_groups[at].mask.trailing_zeros() as usize & (LANES - 1)
    }

    fn code<'c>(cta: &Cta<'c>) -> &'c Code {
        cta.launch.code
    }
}
