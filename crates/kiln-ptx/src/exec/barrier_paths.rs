//! Which threads went around a barrier: what they ran before they exited, compared with the code behind the barrier.

use super::barrier::Met;
use super::block::{Cta, Exit};
use super::lowered_code::{Code, Op, OperandUse, Step};
use super::memory::generic_address::Place;
use super::warp_register::lanes_where;

impl Cta<'_> {
    /// The lanes among those that have ended without a barrier which went around it.
    pub(super) fn lanes_around(&self, met: &Met, warp: usize, absent: u32, is_part: bool) -> u32 {
        let exits = &self.exits[warp];
        let ahead = lanes_where(absent, |lane| exits[lane].is_ahead_of(met, self.barriers_met));
        if ahead != 0 && self.launch.code.leads_to(met.pc + 1, met.pc) {
            return ahead;
        }
        let around = if is_part { self.lanes_gone_around(&met.behind, warp, absent) } else { 0 };
        if around != 0 {
            return around;
        }
        self.lanes_where_exit(warp, absent, |exit| {
            let code = self.launch.code;
            exit.barriers_met == self.barriers_met
                && (code.has_passed(met, exit) || code.is_around(met, exit))
        })
    }

    /// The lanes that ran code which also lies behind a step before they exited. An early `return` leads to the last instruction alone. `behind` is the
    /// next step, and those behind the calls that lead to it.
    pub(crate) fn lanes_gone_around(&self, behind: &[u32], warp: usize, lanes: u32) -> u32 {
        self.lanes_where_exit(warp, lanes, |exit| self.launch.code.goes_around(behind, exit.pc))
    }

    /// The lanes of which something holds about where they exited. Most exited at the same place.
    fn lanes_where_exit(&self, warp: usize, lanes: u32, holds: impl Fn(&Exit) -> bool) -> u32 {
        let mut known: Option<(Exit, bool)> = None;
        lanes_where(lanes, |lane| {
            let exit = self.exits[warp][lane];
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

impl Code {
    fn goes_around(&self, behind: &[u32], exit: u32) -> bool {
        let Some(entered) = self.entered(exit) else { return false };
        let is_code = |step: &Step| !matches!(step.op, Op::Nothing | Op::Exit | Op::Return);
        let ran = self.steps.get(entered as usize..exit as usize).unwrap_or_default();
        ran.iter().any(is_code) && behind.iter().any(|step| self.leads_to(*step, entered))
    }

    /// Whether threads that exited executed a branch that lies on all ways from a barrier to the end.
    fn has_passed(&self, met: &Met, exit: &Exit) -> bool {
        // The entry's own step: the barrier, or the call that led to it.
        let site = met.behind.last().map(|behind| behind.saturating_sub(1));
        self.branches_behind.iter().any(|(at, branches)| Some(*at) == site && branches & exit.passed != 0)
    }

    /// Whether threads that exited went around a barrier: the last branch that they decided, or the last code that they ran, lies behind the barrier, and
    /// no way leads back to it. Compilers merge the end of an early `return` with the end of the kernel. What a return stored is then chosen before the
    /// merged code, so code that depends on the way the threads came is not taken for code behind the barrier, and neither is code that reads nothing.
    fn is_around(&self, met: &Met, exit: &Exit) -> bool {
        let is_behind = |first: u32, last: u32| {
            self.source_line(last).is_some()
                && met.behind.iter().any(|step| self.leads_to(*step, first))
                && !self.leads_to(first, met.pc)
                && !met.behind.iter().any(|step| self.depends_on_way(*step, first, last))
        };
        let decided = exit.last_branch.filter(|branch| *branch != met.pc);
        let decided = decided.and_then(|branch| Some((self.entered(branch)?, branch)));
        if decided.is_some_and(|(first, branch)| is_behind(first, branch)) {
            return true;
        }
        let Some(first) = self.entered(exit.pc) else { return false };
        let ran = self.steps.get(first as usize..exit.pc as usize).unwrap_or_default();
        let reads = |step: &Step| matches!(&step.op, Op::Load(load) if load.place != Place::Param);
        ran.iter().any(reads) && is_behind(first, exit.pc.saturating_sub(1))
    }

    /// The last target of a branch before a step, in its function: where threads that executed the step came in.
    fn entered(&self, step: u32) -> Option<u32> {
        let starts = self.functions.iter().map(|function| function.start);
        let start = starts.filter(|start| *start <= step).max().unwrap_or(0);
        let targets = self.steps.iter().flat_map(|step| step.op.targets());
        targets.copied().filter(|target| (start..=step).contains(target)).max()
    }

    /// Whether the steps from `first` to `last` use a register that is assigned on the way from a step to `first`.
    fn depends_on_way(&self, from: u32, first: u32, last: u32) -> bool {
        use OperandUse::{Carries, CarriesPredicate, Uses, UsesPredicate, Writes, WritesPredicate};
        let (mut columns, mut predicates) = (Vec::new(), Vec::new());
        let (mut set_columns, mut set_predicates) = (Vec::new(), Vec::new());
        for step in self.steps.get(first as usize..=last as usize).unwrap_or_default() {
            if !set_predicates.contains(&step.guard.pred.0) {
                predicates.push(step.guard.pred.0);
            }
            step.op.operands(&mut |operand| match operand {
                Uses(source) | Carries(source) => {
                    columns.extend(source.split().err().filter(|column| !set_columns.contains(column)));
                }
                UsesPredicate(source) | CarriesPredicate(source) => {
                    predicates.extend(Some(source.pred.0).filter(|pred| !set_predicates.contains(pred)));
                }
                Writes(_) | WritesPredicate(_) => {}
            });
            step.op.operands(&mut |operand| match operand {
                Writes(to) => set_columns.push(to.0),
                WritesPredicate(to) => set_predicates.push(to.0),
                _ => {}
            });
        }
        let mut depends = false;
        self.each_step_to(from, first, |step| {
            step.op.operands(&mut |operand| match operand {
                Writes(to) => depends |= to.0 != 0 && columns.contains(&to.0),
                WritesPredicate(to) => depends |= to.0 > 1 && predicates.contains(&to.0),
                _ => {}
            });
        });
        depends
    }
}
