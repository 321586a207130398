//! Steps that only compute, one behind the other.
//!
//! Most steps read and write registers of their lane group alone. Where the warp has one lane group, no order is drawn from a seed, and nothing is counted
//! or undefined, such steps run in a loop that looks at nothing else.

use super::Warp;
use crate::exec::alu::Input;
use crate::exec::block::Cta;
use crate::exec::lowered_code::{Op, PredSource};
use crate::exec::warp_register::blend;

impl Warp {
    /// Runs steps until one comes that does more than compute, or the warp has run `stop` instructions, or `left` steps have run. The place of the lane
    /// group is then that of the next step.
    #[inline]
    pub(super) fn compute(&mut self, cta: &mut Cta<'_>, at: usize, stop: u64, left: &mut u64) {
        let (constants, set, code) = (&*cta.launch.constants, cta.launch.set, cta.launch.code);
        let Some(lane_group) = self.lane_groups.get_mut(at) else { return };
        let (mask, watched) = (lane_group.mask, self.watch.pc);
        let all = u64::from(mask.count_ones());
        let frame = &mut self.frames[lane_group.frame];
        let (mut pc, mut steps, mut threads) = (lane_group.pc, 0u64, 0u64);
        // One step is always left for the caller, who looks at all limits.
        let limit = stop.saturating_sub(self.steps).min(left.saturating_sub(1));
        let mut ran = 0u64;
        while ran < limit && pc != watched {
            let Some(step) = code.steps.get(pc as usize) else { break };
            if step.watched {
                break;
            }
            let lanes = match step.guard {
                PredSource::ALWAYS => mask,
                guard => mask & frame.test(guard),
            };
            let mut next = pc + 1;
            match &step.op {
                Op::Alu { .. } | Op::Copy { .. } | Op::Select { .. } if lanes == 0 => {}
                Op::Alu { run, mode, to, from } => {
                    let (a, b) = (frame.column(from[0], constants), frame.column(from[1], constants));
                    let (c, d) = (frame.column(from[2], constants), frame.column(from[3], constants));
                    run(&Input { set, mask: lanes, mode, a, b, c, d }, &mut self.result);
                    frame.take(*to, &mut self.result, lanes);
                }
                Op::Compare(compare) if compare.combine.is_none() => {
                    let (a, b) = (frame.column(compare.a, constants), frame.column(compare.b, constants));
                    let input = Input { set, mask: lanes, mode: &compare.mode, a, b, c: b, d: b };
                    let holds = if lanes == 0 { 0 } else { (compare.test)(&input) };
                    frame.set(compare.to, holds, lanes);
                    frame.set(compare.opposite, !holds, lanes);
                }
                Op::Copy { to, from } => {
                    *self.result = *frame.column(*from, constants);
                    frame.take(*to, &mut self.result, lanes);
                }
                Op::Select { to, a, b, pick } => {
                    *self.result = *frame.column(*b, constants);
                    blend(&mut self.result, frame.column(*a, constants), lanes & frame.test(*pick));
                    frame.take(*to, &mut self.result, lanes);
                }
                Op::Branch { target, when } if step.decides == 0 && lanes == mask => {
                    let taken = frame.test(*when) & mask;
                    if taken != 0 && taken != mask {
                        break;
                    }
                    next = if taken == 0 { pc + 1 } else { *target };
                }
                Op::Jump { target } if lanes == mask => next = *target,
                _ => break,
            }
            if step.first {
                steps += 1;
                // A count takes many instructions on the oldest processors.
                threads += if lanes == mask { all } else { u64::from(lanes.count_ones()) };
            }
            ran += 1;
            pc = next;
        }
        lane_group.pc = pc;
        *left -= ran;
        self.steps += steps;
        cta.counters.warp_instructions += steps;
        cta.counters.thread_instructions += threads;
    }
}
