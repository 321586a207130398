//! Branches that an undefined value decides and that change nothing but undefined registers.

use super::Warp;
use super::lane_group::LaneGroup;
use crate::exec::block::Cta;
use crate::exec::check::ValueRule;
use crate::exec::lowered_code::{Code, Op, OperandUse, PredSource, Reg};
use crate::exec::warp_register::each;

/// The most steps that such a branch goes around.
const LONGEST: u32 = 64;

impl Warp {
    /// Whether a branch whose predicate is undefined goes around arithmetic alone, and all that this assigns is undefined already in the lanes that are
    /// meant, or not used behind it. It then works as a selection of undefined values: what uses those is reported. `__h2div` has such branches.
    pub(super) fn is_decided_later(
        &self,
        cta: &Cta<'_>,
        at: usize,
        target: u32,
        when: PredSource,
        lanes: u32,
    ) -> bool {
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        let undefined = &self.frames[frame].undefined;
        let used = undefined.predicate(when) & lanes;
        if used == 0
            || !cta.launch.rules.has(ValueRule::BranchAround)
            || !cta.launch.code.computes(pc + 1, target)
        {
            return false;
        }
        let mut is_undefined = true;
        for step in &cta.launch.code.steps[pc as usize + 1..target as usize] {
            step.op.operands(&mut |operand| match operand {
                OperandUse::Writes(to) if to.0 != 0 => {
                    let mut all = 0;
                    each(used, |lane| {
                        let is_marked = undefined.lanes(to.into(), 1 << lane, u64::MAX) != 0;
                        all |= u32::from(is_marked) << lane;
                    });
                    is_undefined &= all == used || !cta.launch.code.is_used_outside(to, pc + 1, target);
                }
                OperandUse::WritesPredicate(to) if to.0 > 1 => {
                    let source = PredSource { pred: to, negated: false };
                    is_undefined &= undefined.predicate(source) & used == used
                        || !cta.launch.code.is_predicate_used_outside(to.0, pc + 1, target);
                }
                _ => {}
            });
        }
        is_undefined
    }
}

impl Code {
    /// Whether all steps from one to another only compute, or go to that other one.
    fn computes(&self, from: u32, to: u32) -> bool {
        let is_near = to > from && to - from <= LONGEST;
        let steps = self.steps.get(from as usize..to as usize).filter(|_| is_near);
        steps.is_some_and(|steps| {
            steps.iter().all(|step| match &step.op {
                Op::Alu { .. } | Op::Compare(_) | Op::Select { .. } | Op::Logic { .. } => true,
                Op::Copy { .. } | Op::Split { .. } | Op::Join { .. } | Op::Nothing => true,
                Op::Branch { target, .. } => *target == to,
                _ => false,
            })
        })
    }

    /// Whether a register is read by a step of the same function outside of a range.
    fn is_used_outside(&self, register: Reg, from: u32, to: u32) -> bool {
        self.any_outside(from, to, |operand| match operand {
            OperandUse::Uses(source) | OperandUse::Carries(source) => source.split() == Err(register.0),
            _ => false,
        })
    }

    fn is_predicate_used_outside(&self, predicate: u32, from: u32, to: u32) -> bool {
        let is_it = |source: PredSource| source.pred.0 == predicate;
        let (first, last) = self.function_around(from);
        let mut guards = (first..last).filter(|at| !(from..to).contains(at));
        guards.any(|at| is_it(self.steps[at as usize].guard))
            || self.any_outside(from, to, |operand| match operand {
                OperandUse::UsesPredicate(source) | OperandUse::CarriesPredicate(source) => is_it(source),
                _ => false,
            })
    }

    fn any_outside(&self, from: u32, to: u32, is_it: impl Fn(OperandUse) -> bool) -> bool {
        let (first, last) = self.function_around(from);
        let mut steps = (first..last).filter(|at| !(from..to).contains(at));
        steps.any(|at| {
            let mut any = false;
            self.steps[at as usize].op.operands(&mut |operand| any |= is_it(operand));
            any
        })
    }

    /// The first step of the function that a step belongs to, and the one behind its last.
    fn function_around(&self, step: u32) -> (u32, u32) {
        let starts = || self.functions.iter().map(|function| function.start);
        let first = starts().filter(|start| *start <= step).max().unwrap_or(0);
        let last = starts().filter(|start| *start > step).min().unwrap_or(self.steps.len() as u32);
        (first, last)
    }
}
