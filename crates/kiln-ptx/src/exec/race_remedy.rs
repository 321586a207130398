//! What would order two accesses that race, as far as the code tells.

use super::block::Cta;
use super::check::{Conflict, RaceCause};
use super::code_location::CodeSite;
use super::lowered_code::{BarrierKind, Code, Op, OperandUse};
use super::warp_register::LANES;

/// The most steps between the parts of an update.
const LONGEST_UPDATE: usize = 32;

/// What orders two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RaceRemedy {
    /// Both threads are in one block: a barrier of the block.
    Order,
    /// The threads are in different blocks of one cluster: a barrier of the cluster.
    Cluster,
    /// The threads are in different blocks: a fence and an atomic, a barrier of the grid, or two launches.
    Grid,
    /// Both threads executed the same instruction, which no barrier stands in between of: one thread for each place, or an atomic.
    OneThread,
    /// Both threads are in one warp, and no other warp was seen to take part: a barrier of the warp.
    WarpBarrier,
    /// Both threads are in one block, of which parts wait at named barriers: a barrier that both take part in.
    NamedBarrier,
    /// The plain load before a loop of `atomicCAS` on the same place: a volatile or an atomic load.
    StrongLoad,
    /// The writer has published the value, and the reader has learned of it: a fence of the reader in between.
    ReaderFence,
    /// Both hold the same lock, around which fences are missing.
    LockFences,
    /// Both read a place and write it back: this function of CUDA C does it in one step.
    Atomic(&'static str),
}

/// How far apart two threads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    Lanes,
    Warps,
    Cluster,
    Blocks,
}

impl RaceRemedy {
    /// How far apart threads may be that it orders, if it is a barrier.
    pub(super) fn reach(self) -> Option<Distance> {
        match self {
            Self::WarpBarrier => Some(Distance::Lanes),
            Self::Order | Self::NamedBarrier => Some(Distance::Warps),
            Self::Cluster => Some(Distance::Cluster),
            Self::Grid => Some(Distance::Blocks),
            _ => None,
        }
    }
}

impl Cta<'_> {
    /// What orders an access of a warp and an earlier one.
    pub(super) fn remedy(&self, warp: usize, pc: u32, conflict: &Conflict) -> RaceRemedy {
        let code = self.launch.code;
        if conflict.cause != RaceCause::Unordered {
            return self.barrier(warp, pc, conflict);
        }
        if code.is_load_before_swap(pc, conflict.pc) || code.is_load_before_swap(conflict.pc, pc) {
            return RaceRemedy::StrongLoad;
        }
        if code.lacks_lock_fence(pc, conflict.pc) {
            return RaceRemedy::LockFences;
        }
        if let Some(function) = code.updated_by(pc, conflict.pc).or_else(|| code.updated_by(conflict.pc, pc))
        {
            return RaceRemedy::Atomic(function);
        }
        if conflict.is_heard_of {
            return RaceRemedy::ReaderFence;
        }
        if pc == conflict.pc && !code.is_in_loop(pc) {
            return RaceRemedy::OneThread;
        }
        self.barrier(warp, pc, conflict)
    }

    /// The barrier that orders an access of a warp and an earlier one.
    pub(super) fn barrier(&self, warp: usize, pc: u32, conflict: &Conflict) -> RaceRemedy {
        match self.distance(warp, conflict) {
            Distance::Cluster => RaceRemedy::Cluster,
            Distance::Blocks => RaceRemedy::Grid,
            // No barrier orders the lanes of one execution.
            Distance::Lanes if pc != conflict.pc => RaceRemedy::WarpBarrier,
            _ if self.launch.code.has_named_barriers() => RaceRemedy::NamedBarrier,
            _ => RaceRemedy::Order,
        }
    }

    /// How far a warp is from the thread of an earlier access.
    pub(super) fn distance(&self, warp: usize, conflict: &Conflict) -> Distance {
        let warps = self.launch.shape.threads().div_ceil(LANES as u64).max(1);
        let block = self.first_thread / self.launch.shape.threads().max(1);
        match () {
            () if conflict.earlier_warp / warps != block => {
                let other = self.launch.clusters.place(conflict.earlier_warp / warps).0;
                if other == self.place_in_cluster.0 { Distance::Cluster } else { Distance::Blocks }
            }
            () if conflict.earlier_warp % warps != warp as u64 => Distance::Warps,
            () => Distance::Lanes,
        }
    }
}

impl Code {
    /// Whether parts of a block wait at named barriers.
    fn has_named_barriers(&self) -> bool {
        let is_named = |op: &Op| matches!(op, Op::Barrier(barrier) if barrier.count.is_some() || barrier.kind == BarrierKind::Arrive);
        self.steps.iter().any(|step| is_named(&step.op))
    }

    /// Whether a thread can come to a step again.
    fn is_in_loop(&self, pc: u32) -> bool {
        let Some(step) = self.steps.get(pc as usize) else { return false };
        let next = (step.op.falls_through()).then_some(pc + 1);
        step.op.targets().iter().copied().chain(next).any(|after| self.leads_to(after, pc))
    }

    fn is_load_before_swap(&self, load: u32, swap: u32) -> bool {
        let op = |pc: u32| self.steps.get(pc as usize).map(|step| &step.op);
        matches!(op(load), Some(Op::Load(load)) if !load.strength.strong)
            && matches!(op(swap), Some(Op::Atomic(atomic)) if atomic.compares)
            && self.leads_to(load, swap)
    }

    /// The function that makes an update in one step, if a store writes back what it computed from the same place, and the other step is a part of such an
    /// update or an atomic.
    fn updated_by(&self, store: u32, other: u32) -> Option<&'static str> {
        let (function, load) = self.update(store)?;
        let is_atomic = matches!(self.steps.get(other as usize).map(|step| &step.op), Some(Op::Atomic(_)));
        let is_part = other == store || other == load || is_atomic || self.update(other).is_some();
        is_part.then_some(function)
    }

    /// The function that does what a store completes, and the load of the same place.
    fn update(&self, store: u32) -> Option<(&'static str, u32)> {
        let Op::Store(to) = &self.steps.get(store as usize)?.op else { return None };
        let [value] = to.from[..] else { return None };
        let mut wanted = vec![value.split().err()?];
        let mut function = None;
        for at in (0..store).rev().take(LONGEST_UPDATE) {
            let op = &self.steps.get(at as usize)?.op;
            if !op.targets().is_empty() || !op.falls_through() {
                return None;
            }
            let mut is_wanted = false;
            op.operands(&mut |operand| {
                is_wanted |= matches!(operand, OperandUse::Writes(to) if wanted.contains(&to.0))
            });
            if !is_wanted {
                continue;
            }
            if let Op::Load(load) = op {
                if !load.strength.strong && load.address.is_same(&to.address) {
                    return Some((function?, at));
                }
                continue;
            }
            function = function.or_else(|| atomic_function(&CodeSite::of(self, at).instruction));
            op.operands(&mut |operand| match operand {
                OperandUse::Uses(from) | OperandUse::Carries(from) => wanted.extend(from.split().err()),
                _ => {}
            });
        }
        None
    }
}

/// The function of CUDA C that does what an instruction does, to memory.
fn atomic_function(instruction: &str) -> Option<&'static str> {
    Some(match instruction.split('.').next()? {
        "add" | "fma" | "mad" => "atomicAdd",
        "sub" => "atomicSub",
        "or" => "atomicOr",
        "and" => "atomicAnd",
        "xor" => "atomicXor",
        "min" => "atomicMin",
        "max" => "atomicMax",
        _ => return None,
    })
}
