//! Branches by which threads show that they went around a barrier: each lies on all ways from the barrier to the end of the kernel, and none leads back to
//! the barrier.
//!
//! An early `return` decides before the barrier and goes to the end, so threads that return do not execute such a branch. A compiler may let them run through
//! the code behind the barrier and skip its parts by a value that tells the ways apart. A branch that depends on such a value says nothing, and is left out.
//!
//! Only the entry has such branches. A function may be called again, and then a branch behind a barrier also lies before it.

use super::super::lowered_code::{Code, Op, OperandUse, PredSource, Step};
use super::post_dominators::PostDominators;
use super::reconvergence::Graph;
use super::unassigned::Register;
use OperandUse::{Carries, CarriesPredicate, Uses, UsesPredicate, Writes, WritesPredicate};

/// Branches that are marked in one kernel.
const MOST_MARKS: usize = 32;
/// Branches looked at behind one barrier.
const MOST_BRANCHES: usize = 8;
/// Barriers looked at in one kernel: each takes time in proportion to the length of the kernel.
const MOST_BARRIERS: usize = 64;

/// Marks these branches, and keeps for each barrier, and for each call that may reach one, which of them lie behind it.
pub(super) fn mark(code: &mut Code) {
    let own = code.functions.get(1).map_or(code.steps.len(), |next| next.start as usize);
    let is_barrier =
        |step: &Step| matches!(&step.op, Op::Barrier(barrier) if barrier.aligned && barrier.count.is_none());
    let calls_one = code.steps.iter().skip(own).any(is_barrier);
    let is_site = |step: &Step| is_barrier(step) || calls_one && matches!(step.op, Op::Call(_));
    let steps = code.steps.get(..own).unwrap_or_default();
    let all_sites = (0..).zip(steps).filter(|(_, step)| is_site(step)).map(|(at, _)| at);
    let sites: Vec<u32> = all_sites.take(MOST_BARRIERS).collect();
    if sites.is_empty() {
        return;
    }
    let entry = Entry::new(steps);
    let mut marked: Vec<u32> = Vec::new();
    let mut behind = Vec::new();
    for site in sites {
        let branches = entry.branches_behind(site, |step| code.source_line(step).is_some());
        let mut mask = 0;
        for branch in branches {
            let known = marked.iter().position(|known| *known == branch);
            let Some(at) = known.or((marked.len() < MOST_MARKS).then_some(marked.len())) else { continue };
            if at == marked.len() {
                marked.push(branch);
            }
            mask |= 1u32 << at;
        }
        if mask != 0 {
            behind.push((site, mask));
        }
    }
    code.branches_behind = behind;
    for (branch, mark) in marked.into_iter().zip(1..) {
        code.steps[branch as usize].mark = mark;
    }
}

/// The steps of an entry.
struct Entry<'a> {
    steps: &'a [Step],
    graph: Graph,
    post_dominators: PostDominators,
    /// Where threads that execute a step may come from.
    came_from: Vec<Vec<u32>>,
}

impl<'a> Entry<'a> {
    fn new(steps: &'a [Step]) -> Self {
        let graph = Graph::new(steps, &[]);
        let post_dominators = PostDominators::new(&graph, steps);
        let mut came_from = vec![Vec::new(); steps.len()];
        for (at, step) in (0..).zip(steps) {
            let next = step.op.falls_through().then_some(at + 1);
            for to in step.op.targets().iter().copied().chain(next) {
                if let Some(from) = came_from.get_mut(to as usize) {
                    from.push(at);
                }
            }
        }
        Self { steps, graph, post_dominators, came_from }
    }

    /// The branches that threads execute behind a site, and none before it; the nearest first.
    fn branches_behind(&self, site: u32, has_line: impl Fn(u32) -> bool) -> Vec<u32> {
        let block = self.graph.block_at(site);
        let before = self.reach(&self.graph.predecessors, &self.graph.predecessors[block], None);
        // A barrier outside of loops is gone around only where a way leads past it.
        let past = (!before[block]).then(|| self.reach(&self.graph.successors, &[0], Some(block)));
        let is_past = |at: usize| past.as_ref().is_none_or(|past| past[at]);
        let after = self.reach(&self.graph.successors, &self.graph.successors[block], None);
        let is_after =
            |step: u32| after[self.graph.block_at(step)] || self.graph.block_at(step) == block && step > site;
        let behind = self.post_dominators.from(block).filter(|at| !before[*at] && is_past(*at));
        let branches = behind.filter_map(|at| {
            let range = self.graph.blocks[at].clone();
            let last = range.end.checked_sub(1)?;
            let when = match self.steps.get(last as usize)?.op {
                Op::Branch { when, .. } => when,
                _ => return None,
            };
            has_line(last).then_some((range.start, last, when))
        });
        branches
            .take(MOST_BRANCHES)
            .filter(|(first, last, when)| {
                let needed = self.needed(*first, *last, *when);
                needed.into_iter().all(|register| !self.depends_on_way(register, *first, site, is_after))
            })
            .map(|(_, last, _)| last)
            .collect()
    }

    /// The blocks that can be reached from some blocks, without those behind another one.
    fn reach(&self, edges: &[Vec<u32>], from: &[u32], without: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; self.graph.blocks.len()];
        let mut open: Vec<usize> = from.iter().map(|block| *block as usize).collect();
        while let Some(block) = open.pop() {
            if Some(block) != without && !std::mem::replace(&mut seen[block], true) {
                open.extend(edges[block].iter().map(|block| *block as usize));
            }
        }
        seen
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
            step.op.operands(&mut |operand| match operand {
                Uses(source) | Carries(source) => needed.extend(source.split().err().map(Register::Column)),
                UsesPredicate(source) | CarriesPredicate(source) => {
                    needed.push(Register::Predicate(source.pred.0))
                }
                Writes(_) | WritesPredicate(_) => {}
            });
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Whether a register may hold a value at a step that threads cannot have which came by the site.
    fn depends_on_way(&self, register: Register, at: u32, site: u32, is_after: impl Fn(u32) -> bool) -> bool {
        let (assigned, by_site) = self.assigned(register, at, site);
        let mut others = assigned.into_iter().filter(|step| !is_after(*step)).peekable();
        if others.peek().is_none() {
            return false;
        }
        let before = if by_site { self.assigned(register, site, site).0 } else { Vec::new() };
        others.any(|step| !before.contains(&step))
    }

    /// The steps whose values a register may hold at a step, and whether some way from the site to there keeps the register as it is.
    fn assigned(&self, register: Register, at: u32, site: u32) -> (Vec<u32>, bool) {
        let mut seen = vec![false; self.steps.len()];
        let mut open = self.came_from.get(at as usize).cloned().unwrap_or_default();
        let (mut found, mut by_site) = (Vec::new(), false);
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            by_site |= at == site;
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
