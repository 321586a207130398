//! Steps that only compute or reach memory in rows, one behind the other.
//!
//! Most steps read and write registers of their lane group alone. Where the warp has one lane group, no order is drawn from a seed, and nothing is counted
//! or undefined, such steps run in a loop that looks at nothing else. The loop computes what all lanes share once, indices as patterns, and 32-bit values
//! as words, see [`Register`](super::register::Register).

use super::Warp;
use super::frame::FrameId;
use super::operand_forms::Room;
use crate::exec::block::Cta;
use crate::exec::lowered_code::{Op, PredSource, QuickKind};
use crate::exec::warp_register::FULL;

impl Warp {
    /// Runs steps until one comes that is none of these, or the warp has run `stop` instructions, or `left` steps have run. The place of the lane group is
    /// then that of the next step. `past_watch`: the state at the watched instruction was looked at. Whether any step ran.
    #[inline]
    pub(super) fn compute(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        stop: u64,
        left: &mut u64,
        past_watch: bool,
    ) -> bool {
        let (launch, code) = (cta.launch, cta.launch.code);
        let Some(lane_group) = self.lane_groups.get(at) else { return false };
        let (mask, id) = (lane_group.mask, lane_group.frame);
        let all = u64::from(mask.count_ones());
        let (mut pc, mut steps, mut absent) = (lane_group.pc, 0u64, 0u64);
        let limit = stop.saturating_sub(self.steps).min(*left);
        let mut ran = 0u64;
        while ran < limit && (pc != self.watch.pc || past_watch && ran == 0) {
            let Some(quick) = code.quick.get(pc as usize) else { break };
            let mut next = pc + 1;
            match quick.kind {
                QuickKind::Simple if mask == FULL => {
                    let part = code.quick.get(pc as usize..).unwrap_or(&[]);
                    let most =
                        (limit - ran).min(u64::from(self.watch.pc.wrapping_sub(pc).wrapping_sub(1)) + 1);
                    let part = part.get(..most as usize).unwrap_or(part);
                    let (count, first) = self.frames[id].simple_steps(launch, part, &mut self.result);
                    steps += first;
                    (ran, pc) = (ran + u64::from(count), pc + count);
                    continue;
                }
                QuickKind::Branch { when, target } => {
                    let taken = self.frames[id].test(when) & mask;
                    if taken != 0 && taken != mask {
                        break;
                    }
                    next = if taken == 0 { pc + 1 } else { target };
                }
                QuickKind::Jump { target } => next = target,
                QuickKind::None => break,
                QuickKind::Pattern if mask == FULL && self.frames[id].pattern_step(launch, quick) => {}
                _ => {
                    let Some(step) = code.steps.get(pc as usize) else { break };
                    let lanes = match step.guard {
                        PredSource::ALWAYS => mask,
                        guard => mask & self.frames[id].test(guard),
                    };
                    if !self.run_in_line(cta, (id, pc), &step.op, lanes) {
                        break;
                    }
                    if lanes != mask && step.first {
                        absent += all - u64::from(lanes.count_ones());
                    }
                }
            }
            steps += u64::from(quick.first);
            ran += 1;
            pc = next;
        }
        self.lane_groups[at].pc = pc;
        *left -= ran;
        self.steps += steps;
        cta.counters.warp_instructions += steps;
        cta.counters.thread_instructions += steps * all - absent;
        ran != 0
    }

    /// Runs a step that is not a branch in some lanes; false, and nothing was done, if it is none that runs here.
    #[inline(never)]
    fn run_in_line(&mut self, cta: &mut Cta<'_>, (id, pc): (FrameId, u32), op: &Op, lanes: u32) -> bool {
        let launch = cta.launch;
        let frame = &mut self.frames[id];
        match op {
            Op::Nothing => {}
            Op::Alu { .. } | Op::Copy { .. } | Op::Select { .. } | Op::Load(_) | Op::Store(_)
                if lanes == 0 => {}
            Op::Alu { run, mode, to, from } => {
                let mut room: Room<'_> = (&mut self.result, &mut *self.scalars);
                frame.alu(launch, (*run, mode), (*to, from), lanes, &mut room);
            }
            Op::Compare(compare) if compare.combine.is_none() => {
                let holds = match lanes {
                    0 => 0,
                    _ => frame.compare(launch, compare, lanes, &mut self.scalars),
                };
                frame.set(compare.to, holds, lanes);
                frame.set(compare.opposite, !holds, lanes);
            }
            Op::Logic { to, a, b, table } => frame.logic(*to, (*a, *b), *table, lanes),
            Op::Copy { to, from } => frame.copy(launch, *to, *from, lanes, &mut self.result),
            Op::Select { to, a, b, pick } => {
                frame.select(launch, *to, (*a, *b, *pick), lanes, &mut self.result);
            }
            Op::Load(load) if lanes == FULL => return self.load_in_rows(cta, (id, pc), load),
            Op::Store(store) if lanes == FULL => return self.store_in_rows(cta, (id, pc), store),
            Op::Special { to, which } if lanes == FULL => return self.special_in_line(cta, id, *to, *which),
            _ => return false,
        }
        true
    }
}
