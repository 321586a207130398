//! Whether threads that meet at a barrier came to it on the same way, and which threads went around it.
//!
//! CUDA C wants a `__syncthreads()` in a branch or a loop only if all threads of the block decide it alike. So threads that meet at a barrier must have made the
//! same decisions since the last one, as far as these decide about the barrier: a decision is over where both sides of its branch
//! meet again, if no barrier was reached on the way. A loop is over when it is left, so a thread that skipped a barrier in one pass comes to it
//! with one pass more.

use super::barrier::Met;
use super::block::{Cta, Exit};
use super::lower::BarrierDecisions;
use super::lowered_code::{Code, Op, Step};
use super::path_tree::{Decision, Path};
use super::warp_register::lanes_where;

impl Cta<'_> {
    /// The way of lanes that go on together from a step and came on two ways. There is none if they came in different passes of a loop with a barrier in it:
    /// such lanes go on apart until they have left the loop, or meet at the barrier.
    pub(crate) fn joined(&self, paths: [Path; 2], at: u32) -> Option<Path> {
        if paths[0] == paths[1] {
            return Some(paths[0]);
        }
        match paths.map(|path| self.open_decisions(path, at)) {
            [Some(first), Some(second)] => (first == second).then_some(paths[0]),
            _ => Some(Path::UNKNOWN),
        }
    }

    /// Whether two ways to two steps are known and differ in what is still open there.
    pub(super) fn differ(&self, first: (u32, Path), second: (u32, Path)) -> Option<bool> {
        if first == second {
            return Some(false);
        }
        let [first, second] = [first, second].map(|(at, path)| self.open_decisions(path, at));
        Some(first? != second?)
    }

    /// The branch at which a way to a barrier and another way part.
    pub(super) fn parting(&self, to_barrier: (u32, Path), other: Path) -> Option<Decision> {
        let facts = self.launch.code.barrier_decisions.as_deref()?;
        let wanted = self.open_decisions(to_barrier.1, to_barrier.0)?;
        let mut open = OpenDecisions { facts, open: Vec::new() };
        let (mut deepest, mut parting) = (0, None);
        for decision in self.paths.decisions(other)? {
            open.make(decision);
            let same = open.open.iter().zip(&wanted).take_while(|(own, wanted)| own == wanted).count();
            if let (Some(own), Some(wanted)) = (open.open.get(same), wanted.get(same))
                && (same >= deepest && own.at == wanted.at)
            {
                (deepest, parting) = (same, Some(*own));
            }
        }
        parting
    }

    fn open_decisions(&self, path: Path, at: u32) -> Option<Vec<Decision>> {
        let facts = self.launch.code.barrier_decisions.as_deref()?;
        let mut open = OpenDecisions { facts, open: Vec::new() };
        self.paths.decisions(path)?.into_iter().for_each(|decision| open.make(decision));
        open.come_to(at);
        Some(open.open)
    }

    /// The lanes among those that have ended without a barrier which went around it.
    pub(super) fn lanes_around(&self, met: &Met, warp: usize, absent: u32, is_part: bool) -> u32 {
        self.lanes_where_exit(warp, absent, |exit| {
            exit.barriers_met == self.barriers_met && self.is_around(met, exit, is_part)
        })
    }

    /// Whether threads that have ended went around a barrier: they decided a branch otherwise than those that wait there, and then stayed in the code that
    /// leads to barriers, or left it in a way that is no early `return`.
    fn is_around(&self, met: &Met, exit: &Exit, is_part: bool) -> bool {
        let code = self.launch.code;
        let Some(facts) = code.barrier_decisions.as_deref() else { return false };
        let parting = self.parting((met.pc, met.path), exit.path);
        if parting.is_some_and(|parting| !facts.leaves(parting)) {
            return true;
        }
        let left = || self.paths.decisions(exit.path)?.pop().filter(|last| facts.leaves(*last));
        let Some(left) = parting.or_else(left) else { return false };
        // The entry's own step: the barrier, or the call that led to it.
        let site = met.behind.last().map_or(met.pc, |behind| behind.saturating_sub(1));
        code.goes_around(left.at, site, is_part)
    }

    /// The lanes that ran code which also lies behind a step before they exited. An early `return` leads to the last instruction alone. `behind` is the
    /// next step, and those behind the calls that lead to it.
    pub(crate) fn lanes_gone_around(&self, behind: &[u32], warp: usize, lanes: u32) -> u32 {
        self.lanes_where_exit(warp, lanes, |exit| self.launch.code.ran_behind(behind, exit.pc))
    }

    /// The lanes of which something holds about where they exited. Most exited at the same place.
    fn lanes_where_exit(&self, warp: usize, lanes: u32, holds: impl Fn(&Exit) -> bool) -> u32 {
        let mut known: Option<(Exit, bool)> = None;
        lanes_where(lanes, |lane| {
            let exit = self.exits[warp].of(lane);
            match known {
                Some((at, held)) if at == exit => held,
                _ => {
                    let held = holds(&exit);
                    known = Some((exit, held));
                    held
                }
            }
        })
    }
}

/// The decisions of a thread that still decide about what it does, and the calls that it is in.
struct OpenDecisions<'a> {
    facts: &'a BarrierDecisions,
    open: Vec<Decision>,
}

impl OpenDecisions<'_> {
    fn make(&mut self, decision: Decision) {
        if decision == Decision::RETURN {
            while self.open.pop().is_some_and(|last| !last.is_call()) {}
            return;
        }
        self.come_to(decision.at);
        if decision.is_call() || self.facts.controls(decision) {
            self.open.push(decision);
        }
    }

    /// The thread comes to a step: decisions whose sides have met again are over.
    fn come_to(&mut self, step: u32) {
        while let Some(last) = self.open.last()
            && !last.is_call()
            && !self.facts.is_decided_by(last.at, step)
        {
            self.open.pop();
        }
    }
}

impl Code {
    fn ran_behind(&self, behind: &[u32], exit: u32) -> bool {
        let Some(entered) = self.entered(exit) else { return false };
        let is_code = |step: &Step| !matches!(step.op, Op::Nothing | Op::Exit | Op::Return);
        let ran = self.steps.get(entered as usize..exit as usize).unwrap_or_default();
        ran.iter().any(is_code) && behind.iter().any(|step| self.leads_to(*step, entered))
    }

    /// The last target of a branch before a step, in its function: where threads that executed the step came in.
    fn entered(&self, step: u32) -> Option<u32> {
        let starts = self.functions.iter().map(|function| function.start);
        let start = starts.filter(|start| *start <= step).max().unwrap_or(0);
        let targets = self.steps.iter().flat_map(|step| step.op.targets());
        targets.copied().filter(|target| (start..=step).contains(target)).max()
    }
}
