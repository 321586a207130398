//! Whether threads that left at a branch ran code that also lies behind the barrier they did not reach.
//!
//! An early `return` goes to the end of the kernel. Threads that went around a barrier run what follows it. Compilers merge the end of an early `return` with
//! the end of the kernel, and what the return stored is then chosen before the merged code. So code that depends on the way the threads came says nothing,
//! and neither does straight-line code that reads no memory. What says something, behind the place where both ways meet again:
//!
//! - a branch that does not depend on the way,
//! - a load in code that does not depend on the way,
//! - arithmetic of a source line that the compiler also has between two copies of the barrier: the end of the body of an unrolled loop.

use std::sync::PoisonError;

use super::super::lowered_code::{Code, Op, OperandUse, PredSource, Step};
use super::super::memory::generic_address::Place;
use super::barrier_decisions::{BarrierDecisions, reach};
use super::unassigned::Register;
use OperandUse::{Carries, CarriesPredicate, Uses, UsesPredicate, Writes, WritesPredicate};

/// Blocks looked at behind one branch.
const MOST_BLOCKS: usize = 8;

impl Code {
    /// Whether threads that left at a branch of the entry went around a barrier there, or a call that leads to one. For lanes of a warp whose other lanes wait
    /// at the barrier, any code behind the meeting of both ways shows it.
    pub(crate) fn goes_around(&self, branch: u32, site: u32, is_part: bool) -> bool {
        let Some(decisions) = &self.barrier_decisions else { return false };
        let key = (branch, site, is_part);
        let known = || decisions.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&key) {
            return *known;
        }
        let found = decisions.is_loop_condition(branch) || self.has_code_behind(decisions, key);
        known().insert(key, found);
        found
    }

    fn has_code_behind(
        &self,
        decisions: &BarrierDecisions,
        (branch, site, is_part): (u32, u32, bool),
    ) -> bool {
        let graph = &decisions.graph;
        let behind = decisions.post_dominators.from(graph.block_at(branch)).skip(1);
        let blocks: Vec<_> = behind.take(MOST_BLOCKS).map(|block| graph.blocks[block].clone()).collect();
        let steps = |block: &std::ops::Range<u32>| block.clone().map(|at| (at, &self.steps[at as usize]));
        if is_part {
            let is_code = |step: &Step| !matches!(step.op, Op::Nothing | Op::Exit | Op::Return);
            return blocks.iter().any(|block| steps(block).any(|(_, step)| is_code(step)));
        }
        let entry = Entry::new(self, decisions, site);
        let reads = |step: &Step| matches!(&step.op, Op::Load(load) if load.place != Place::Param);
        let copied = self.lines_between_copies(decisions, site);
        blocks.iter().any(|block| {
            let last = block.end.saturating_sub(1);
            let is_branch = match &self.steps[last as usize].op {
                Op::Branch { when, .. } => {
                    let needed = entry.needed(block.start, last, *when);
                    !needed.into_iter().any(|register| entry.depends_on_way(register, block.start))
                }
                _ => false,
            };
            let is_load = || {
                steps(block).any(|(_, step)| reads(step))
                    && !entry
                        .used(block)
                        .into_iter()
                        .any(|register| entry.depends_on_way(register, block.start))
            };
            let is_copy = || {
                steps(block).any(|(at, step)| {
                    matches!(step.op, Op::Alu { .. } | Op::Load(_))
                        && self.source_line(at).is_some_and(|line| copied.contains(&line.place))
                })
            };
            is_branch || is_load() || is_copy()
        })
    }

    /// The lines of arithmetic and loads between another copy of a barrier and the barrier. Copies have the same place in the source.
    fn lines_between_copies(&self, decisions: &BarrierDecisions, site: u32) -> Vec<crate::SourcePlace> {
        let graph = &decisions.graph;
        let Some(line) = self.source_line(site).filter(|line| line.place.column != 0) else {
            return Vec::new();
        };
        let is_copy = |at: u32| {
            at != site
                && matches!(self.steps[at as usize].op, Op::Barrier(_))
                && self.source_line(at) == Some(line)
        };
        let copies = (0..self.steps.len() as u32).filter(|at| is_copy(*at));
        let behind: Vec<u32> =
            copies.flat_map(|at| graph.successors[graph.block_at(at)].iter().copied()).collect();
        let behind = reach(&graph.successors, &behind, None);
        let before = reach(&graph.predecessors, &graph.predecessors[graph.block_at(site)], None);
        let between = (0..graph.blocks.len()).filter(|block| behind[*block] && before[*block]);
        let steps = between.flat_map(|block| graph.blocks[block].clone());
        let computes = |at: &u32| matches!(self.steps[*at as usize].op, Op::Alu { .. } | Op::Load(_));
        let places = steps.filter(computes).filter_map(|at| Some(self.source_line(at)?.place));
        places.filter(|place| place.column != 0).collect()
    }
}

/// The steps of an entry, seen from a barrier in it.
struct Entry<'a> {
    steps: &'a [Step],
    decisions: &'a BarrierDecisions,
    site: u32,
    /// The blocks behind the barrier.
    after: Vec<bool>,
    /// Where threads that execute a step may come from.
    came_from: Vec<Vec<u32>>,
}

impl<'a> Entry<'a> {
    fn new(code: &'a Code, decisions: &'a BarrierDecisions, site: u32) -> Self {
        let own = code.functions.get(1).map_or(code.steps.len(), |next| next.start as usize);
        let steps = code.steps.get(..own).unwrap_or_default();
        let mut came_from = vec![Vec::new(); steps.len()];
        for (at, step) in (0..).zip(steps) {
            let next = step.op.falls_through().then_some(at + 1);
            for to in step.op.targets().iter().copied().chain(next) {
                if let Some(from) = came_from.get_mut(to as usize) {
                    from.push(at);
                }
            }
        }
        let graph = &decisions.graph;
        let after = reach(&graph.successors, &graph.successors[graph.block_at(site)], None);
        Self { steps, decisions, site, after, came_from }
    }

    fn is_after(&self, step: u32) -> bool {
        let graph = &self.decisions.graph;
        let block = graph.block_at(step);
        self.after[block] || block == graph.block_at(self.site) && step > self.site
    }

    /// The registers that decide a branch and have their values before its block.
    fn needed(&self, first: u32, last: u32, when: PredSource) -> Vec<Register> {
        let mut needed = vec![Register::Predicate(when.pred.0)];
        for step in self.steps.get(first as usize..last as usize).unwrap_or_default().iter().rev() {
            if !needed.iter().any(|register| writes(step, *register)) {
                continue;
            }
            if step.guard == PredSource::ALWAYS {
                needed.retain(|register| !writes(step, *register));
            } else {
                needed.push(Register::Predicate(step.guard.pred.0));
            }
            needed.extend(reads(step));
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The registers that a block uses and that have their values before it.
    fn used(&self, block: &std::ops::Range<u32>) -> Vec<Register> {
        let mut used: Vec<Register> = Vec::new();
        for step in self.steps.get(block.start as usize..block.end as usize).unwrap_or_default().iter().rev()
        {
            if step.guard == PredSource::ALWAYS {
                used.retain(|register| !writes(step, *register));
            } else {
                used.push(Register::Predicate(step.guard.pred.0));
            }
            used.extend(reads(step));
        }
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Whether a register may hold a value at a step that threads cannot have which came by the barrier.
    fn depends_on_way(&self, register: Register, at: u32) -> bool {
        let (assigned, by_site) = self.assigned(register, at);
        let mut others = assigned.into_iter().filter(|step| !self.is_after(*step)).peekable();
        if others.peek().is_none() {
            return false;
        }
        let before = if by_site { self.assigned(register, self.site).0 } else { Vec::new() };
        others.any(|step| !before.contains(&step))
    }

    /// The steps whose values a register may hold at a step, and whether some way from the barrier to there keeps the register as it is.
    fn assigned(&self, register: Register, at: u32) -> (Vec<u32>, bool) {
        let mut seen = vec![false; self.steps.len()];
        let mut open = self.came_from.get(at as usize).cloned().unwrap_or_default();
        let (mut found, mut by_site) = (Vec::new(), false);
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            by_site |= at == self.site;
            let step = &self.steps[at as usize];
            if writes(step, register) {
                found.push(at);
                if step.guard == PredSource::ALWAYS {
                    continue;
                }
            }
            open.extend(&self.came_from[at as usize]);
        }
        (found, by_site)
    }
}

/// The registers that a step reads.
fn reads(step: &Step) -> Vec<Register> {
    let mut read = Vec::new();
    step.op.operands(&mut |operand| match operand {
        Uses(source) | Carries(source) => read.extend(source.split().err().map(Register::Column)),
        UsesPredicate(source) | CarriesPredicate(source) => read.push(Register::Predicate(source.pred.0)),
        Writes(_) | WritesPredicate(_) => {}
    });
    read
}

fn writes(step: &Step, register: Register) -> bool {
    let mut found = false;
    step.op.operands(&mut |operand| {
        found |= match (operand, register) {
            (Writes(to), Register::Column(column)) => to.0 == column,
            (WritesPredicate(to), Register::Predicate(pred)) => to.0 == pred,
            _ => false,
        }
    });
    found
}
