//! Barriers of a block, from the side of a warp.

use super::lane_group::{LaneGroup, State};
use super::{Done, Flow, Trouble, Warp};
use crate::exec::barrier::{Arrival, BARRIERS, BadCount, Complaint, Met};
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{Barrier, BarrierKind, Op};
use crate::exec::path_tree::Path;
use crate::exec::warp_register::{LANES, first_lane, lanes_where};

impl Warp {
    pub(super) fn barrier(&mut self, cta: &mut Cta<'_>, at: usize, barrier: &Barrier) -> Done<Flow> {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let constants = &cta.launch.constants;
        let numbers = *self.frames[frame].column(barrier.number, constants);
        let lane = first_lane(mask);
        let number = numbers[lane];
        let together = lanes_where(mask, |lane| numbers[lane] == number);
        if number >= BARRIERS as u64 {
            let text =
                format!("the kernel uses barrier {number}, and a block has barriers 0 to {}", BARRIERS - 1);
            return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
        }
        if together != mask {
            // The others arrive at their own barrier afterwards, from the same place.
            self.split(at, mask & !together, pc);
        }
        let counts = barrier.count.map(|source| *self.frames[frame].column(source, constants));
        let count = counts.map(|counts| counts[lane] as u32);
        let mut arrival = Arrival {
            warp: self.index,
            lanes: together,
            kind: barrier.kind,
            count,
            pred: self.frames[frame].test(barrier.pred) & together,
            pc,
            aligned: barrier.aligned,
            path: self.lane_groups[at].path,
            behind: self.steps_behind(at),
        };
        if let (Some(first), Some(counts)) = (count, counts) {
            let number = number as usize;
            let other = lanes_where(together, |lane| counts[lane] as u32 != first);
            if other != 0 {
                let second = Some(counts[first_lane(other)] as u32);
                cta.complain(number, &arrival, Complaint::CountDiffers { first: count, second });
            }
            if let Some(bad) = BadCount::in_block(first, cta.launch.shape.threads()) {
                cta.complain(number, &arrival, Complaint::Count(bad));
                // Hardware counts warps.
                arrival.count = (first != 0).then(|| first.checked_next_multiple_of(32).unwrap_or(first));
            }
        }
        cta.arrive(number as usize, &arrival);
        if arrival.waits() {
            self.lane_groups[at].state = State::Barrier(number as u8);
            return Ok(Flow::Switch);
        }
        self.lane_groups[at].pc = pc + 1;
        Ok(Flow::Switch)
    }

    /// Lets the lane groups go on that waited at a barrier.
    pub(crate) fn release(&mut self, cta: &Cta<'_>, number: usize, met: &Met) {
        let code = Self::code(cta);
        for at in 0..self.lane_groups.len() {
            let LaneGroup { mask, pc, frame, state, .. } = self.lane_groups[at];
            if state != State::Barrier(number as u8) {
                continue;
            }
            if let Some(Op::Barrier(barrier)) = code.steps.get(pc as usize).map(|step| &step.op) {
                let frame = &mut self.frames[frame];
                let truth = |holds: bool| if holds { u32::MAX } else { 0 };
                match barrier.kind {
                    BarrierKind::CountTrue => {
                        frame.write(barrier.to, &[u64::from(met.count_true); LANES], mask)
                    }
                    BarrierKind::AllTrue => frame.set(barrier.to_pred, truth(met.all_true), mask),
                    BarrierKind::AnyTrue => frame.set(barrier.to_pred, truth(met.count_true != 0), mask),
                    BarrierKind::Sync | BarrierKind::Arrive => {}
                }
            }
            self.lane_groups[at].state = State::Ready;
            self.lane_groups[at].repeats = None;
            if met.whole_block {
                self.lane_groups[at].path = Path::START;
            }
            self.lane_groups[at].pc = pc + 1;
        }
    }
}
