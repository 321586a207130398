//! Counts of what launches execute: instructions, bytes, sectors, bank conflicts, divergence.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::code_location::CodeSite;
use super::instruction_kind::InstructionKind;
use super::lowered_code::Code;

/// Counts for every instruction of an entry, over any number of launches.
///
/// Made by [`Entry::statistics`](super::Entry::statistics) and given to launches in [`Options`](super::Options); the entry then
/// [adds them up](super::Entry::statistics_report). Launches without it count nothing of this.
#[derive(Debug)]
pub struct LaunchStatistics {
    steps: Mutex<Vec<ExecutionCounts>>,
}

/// What was executed of some instructions.
///
/// A request is one instruction of one warp that accesses memory. Counts of sectors, wavefronts and passes follow the rules of the CUDA programming guide; caches
/// are not modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    /// Instructions, counted once for each warp, or part of one that has diverged.
    pub warp_instructions: u64,
    /// Instructions, counted once for each thread that executes them.
    pub thread_instructions: u64,
    /// Threads that were with their warp at each instruction, whether its guard let them execute it or not.
    pub active_threads: u64,
    /// Threads that each warp has at each instruction, also those that have diverged or exited.
    pub warp_threads: u64,
    /// Bytes that threads load and store, by memory.
    pub bytes: MemoryBytes,
    /// Requests to global memory, without constants.
    pub global_requests: u64,
    /// Pieces of 32 bytes that these touch.
    pub global_sectors: u64,
    /// How many pieces would hold the bytes that each request touches.
    pub ideal_sectors: u64,
    /// Requests to shared memory.
    pub shared_requests: u64,
    /// Rounds that these take: in each round every bank of 4 bytes gives one word.
    pub shared_wavefronts: u64,
    /// Rounds without conflicts between banks.
    pub ideal_wavefronts: u64,
    /// Atomic updates by threads.
    pub atomic_updates: u64,
    /// Rounds that these take where lanes of a warp update the same address one after the other.
    pub atomic_passes: u64,
    /// Barriers that warps came to.
    pub barriers: u64,
}

/// Bytes that threads access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// From global memory.
    pub global_loaded: u64,
    /// To global memory.
    pub global_stored: u64,
    /// From shared memory.
    pub shared_loaded: u64,
    /// To shared memory.
    pub shared_stored: u64,
    /// From local memory.
    pub local_loaded: u64,
    /// To local memory.
    pub local_stored: u64,
    /// From `__constant__` variables.
    pub constant_loaded: u64,
    /// From the arguments of the kernel.
    pub parameter_loaded: u64,
}

impl AddAssign for MemoryBytes {
    fn add_assign(&mut self, other: Self) {
        self.global_loaded += other.global_loaded;
        self.global_stored += other.global_stored;
        self.shared_loaded += other.shared_loaded;
        self.shared_stored += other.shared_stored;
        self.local_loaded += other.local_loaded;
        self.local_stored += other.local_stored;
        self.constant_loaded += other.constant_loaded;
        self.parameter_loaded += other.parameter_loaded;
    }
}

impl AddAssign for ExecutionCounts {
    fn add_assign(&mut self, other: Self) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.active_threads += other.active_threads;
        self.warp_threads += other.warp_threads;
        self.bytes += other.bytes;
        self.global_requests += other.global_requests;
        self.global_sectors += other.global_sectors;
        self.ideal_sectors += other.ideal_sectors;
        self.shared_requests += other.shared_requests;
        self.shared_wavefronts += other.shared_wavefronts;
        self.ideal_wavefronts += other.ideal_wavefronts;
        self.atomic_updates += other.atomic_updates;
        self.atomic_passes += other.atomic_passes;
        self.barriers += other.barriers;
    }
}

/// What launches executed, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticsReport {
    /// Of all instructions.
    pub total: ExecutionCounts,
    /// Of each kind that was executed, most thread instructions first.
    pub kinds: Vec<(InstructionKind, ExecutionCounts)>,
    /// Of each line of the source that was executed, most warp instructions first; none where the PTX has no line information.
    pub lines: Vec<LineStatistics>,
}

/// What was executed of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStatistics {
    /// The file of the source.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What was executed.
    pub counts: ExecutionCounts,
}

impl LaunchStatistics {
    pub(crate) fn new(code: &Code) -> Self {
        Self { steps: Mutex::new(vec![ExecutionCounts::default(); code.steps.len()]) }
    }

    /// Counts for the same steps, all zero: what one host thread counts.
    pub(crate) fn nothing(&self) -> Vec<ExecutionCounts> {
        vec![ExecutionCounts::default(); self.steps().len()]
    }

    /// Adds what a host thread counted of each step.
    pub(crate) fn add(&self, counted: &[ExecutionCounts]) {
        self.steps().iter_mut().zip(counted).for_each(|(step, counts)| *step += *counts);
    }

    fn steps(&self) -> MutexGuard<'_, Vec<ExecutionCounts>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self, code: &Code) -> StatisticsReport {
        let mut report = StatisticsReport::default();
        let (mut kinds, mut lines) = (BTreeMap::new(), BTreeMap::new());
        for (pc, counts) in (0..).zip(self.steps().iter()) {
            if *counts == ExecutionCounts::default() {
                continue;
            }
            report.total += *counts;
            let kind = kind_at(code, pc);
            *kinds.entry(kind).or_insert_with(ExecutionCounts::default) += *counts;
            if let Some(place) = CodeSite::of(code, pc).source {
                *lines.entry(place).or_insert_with(ExecutionCounts::default) += *counts;
            }
        }
        report.kinds = kinds.into_iter().collect();
        report.kinds.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.thread_instructions));
        report.lines =
            lines.into_iter().map(|((file, line), counts)| LineStatistics { file, line, counts }).collect();
        report.lines.sort_by_key(|line| std::cmp::Reverse(line.counts.warp_instructions));
        report
    }
}

/// The kind of the instruction that a step belongs to.
fn kind_at(code: &Code, pc: u32) -> InstructionKind {
    let form = || {
        let origin = code.origins.get(pc as usize)?;
        let function = code.module.function(crate::PtxFunctionId(origin.function))?;
        let instruction = function.body.as_ref()?.instructions().get(origin.instruction as usize)?;
        code.module.form(instruction.form)
    };
    form().map_or(InstructionKind::Other, InstructionKind::of)
}
