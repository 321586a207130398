//! Which steps wait for another thread: strong reads of one place, repeated until it holds some value.

use super::*;
use OperandUse::{Carries, CarriesPredicate, Uses, UsesPredicate, Writes, WritesPredicate};

/// The most steps of a loop that waits.
const LONGEST: usize = 64;

/// Columns and predicates of a frame.
#[derive(Default)]
struct Registers {
    columns: Vec<u32>,
    predicates: Vec<u32>,
}

impl Registers {
    fn has(&self, operand: OperandUse) -> bool {
        match operand {
            Uses(source) | Carries(source) => {
                source.split().is_err_and(|column| self.columns.contains(&column))
            }
            UsesPredicate(source) | CarriesPredicate(source) => self.predicates.contains(&source.pred.0),
            Writes(to) => self.columns.contains(&to.0),
            WritesPredicate(to) => self.predicates.contains(&to.0),
        }
    }

    /// Adds what a step writes. Compilers assign constants in each round: those stay the same.
    fn add_written(&mut self, op: &Op) {
        if matches!(op, Op::Copy { from, .. } if from.split().is_ok()) {
            return;
        }
        op.operands(&mut |operand| match operand {
            Writes(to) => self.columns.push(to.0),
            WritesPredicate(to) => self.predicates.push(to.0),
            _ => {}
        });
    }
}

impl Code {
    /// For each step whether it waits: a strong load, or an atomic that takes a lock or changes nothing, in a loop that only reads and computes,
    /// always at the same address, until its result ends the loop. Empty if none does.
    pub(crate) fn waits(&self) -> Vec<bool> {
        let waits: Vec<bool> = (0..self.steps.len()).map(|at| self.is_wait(at as u32)).collect();
        if waits.contains(&true) { waits } else { Vec::new() }
    }

    /// The exchanges, compare-and-swaps and strong loads that wait, by rising number.
    pub(crate) fn find_lock_spins(&self) -> Vec<u32> {
        let takes = |op: &Op| match op {
            Op::Atomic(atomic) => atomic.compares || !atomic.reads,
            Op::Load(load) => load.strength.strong,
            _ => false,
        };
        let steps = (0..).zip(&self.steps).filter(|(_, step)| takes(&step.op));
        steps.map(|(at, _)| at).filter(|at| self.is_wait(*at)).collect()
    }

    fn is_wait(&self, at: u32) -> bool {
        let op = &self.steps[at as usize].op;
        let may_wait = match op {
            Op::Load(load) => load.strength.strong,
            Op::Atomic(atomic) => atomic.compares || !atomic.reads || self.changes_nothing(atomic),
            _ => false,
        };
        if !may_wait {
            return false;
        }
        let Some(round) = self.shortest_round(at) else { return false };
        let steps = || round.iter().map(|step| &self.steps[*step as usize]);
        if !steps().all(|step| step.op.only_reads_and_computes()) {
            return false;
        }
        let mut written = Registers::default();
        steps().for_each(|step| written.add_written(&step.op));
        written.add_written(op);
        let mut is_same = true;
        op.operands(&mut |operand| is_same &= matches!(operand, Writes(_)) || !written.has(operand));
        is_same && ends_by(op, steps())
    }

    /// Whether an atomic reads alone: `atomicAdd(p, 0)`.
    fn changes_nothing(&self, atomic: &Atomic) -> bool {
        let constant = atomic.b.split().ok().and_then(|at| self.constants.get(at as usize));
        let Some(Constant::Bits(b)) = constant else { return false };
        let ones = u64::MAX >> (64 - 8 * atomic.bytes.clamp(1, 8));
        [0, 1, ones].iter().all(|old| (atomic.update)(*old, *b, 0) == *old)
    }

    /// The steps of the shortest way from a step back to it, without itself.
    fn shortest_round(&self, start: u32) -> Option<Vec<u32>> {
        let mut came: Vec<(u32, usize)> = vec![(start, 0)];
        let mut next = 0;
        while next < came.len() && came.len() < LONGEST {
            let (at, _) = came[next];
            let step = self.steps.get(at as usize)?;
            let falls = step.op.falls_through() || step.guard != PredSource::ALWAYS;
            for target in step.op.targets().iter().copied().chain(falls.then_some(at + 1)) {
                if target == start {
                    let mut round = Vec::new();
                    let mut place = next;
                    while place != 0 {
                        round.push(came[place].0);
                        place = came[place].1;
                    }
                    round.reverse();
                    return Some(round);
                }
                if (target as usize) < self.steps.len() && !came.iter().any(|(known, _)| *known == target) {
                    came.push((target, next));
                }
            }
            next += 1;
        }
        None
    }
}

impl Op {
    /// Whether other threads see nothing of it but the time it takes.
    fn only_reads_and_computes(&self) -> bool {
        !matches!(
            self,
            Self::Store(_)
                | Self::Atomic(_)
                | Self::CopyAsync(_)
                | Self::Mbarrier(_)
                | Self::Texture(_)
                | Self::BulkCopy(_)
                | Self::TensorCopy(_)
                | Self::TensorMapEdit(_)
                | Self::CommitBulkCopies
                | Self::WaitForBulkCopies { .. }
                | Self::Warpgroup(_)
                | Self::Barrier(_)
                | Self::ClusterBarrier(_)
                | Self::Call(_)
                | Self::Builtin(_)
                | Self::CommitCopies
                | Self::WaitForCopies { .. }
        )
    }
}

/// Whether a branch of the round depends on what the step found.
fn ends_by<'s>(op: &Op, round: impl Iterator<Item = &'s Step>) -> bool {
    let mut found = Registers::default();
    found.add_written(op);
    for step in round {
        let mut depends = found.predicates.contains(&step.guard.pred.0);
        step.op.operands(&mut |operand| {
            depends |= !matches!(operand, Writes(_) | WritesPredicate(_)) && found.has(operand);
        });
        if depends && !step.op.targets().is_empty() {
            return true;
        }
        if depends {
            found.add_written(&step.op);
        }
    }
    false
}
