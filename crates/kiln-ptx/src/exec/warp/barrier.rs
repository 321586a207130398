//! Barriers of a block, from the side of a warp.

use super::lane_group::{LaneGroup, State};
use super::{Done, Flow, Trouble, Warp};
use crate::exec::barrier::{Arrival, BARRIERS, Met};
use crate::exec::block::Cta;
use crate::exec::code::{Barrier, BarrierKind, Op};
use crate::exec::column::{LANES, first_lane, lanes_where};
use crate::exec::finding::ExecFindingKind;

impl Warp {
    pub(super) fn barrier(&mut self, cta: &mut Cta<'_>, at: usize, barrier: &Barrier) -> Done<Flow> {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        let constants = &cta.launch.constants;
        let numbers = *self.frames[frame].column(barrier.number, constants);
        let lane = first_lane(mask);
        let number = numbers[lane];
        let together = lanes_where(mask, |lane| numbers[lane] == number);
        if number >= BARRIERS as u64 {
            let text = format!("barrier {number}, of which a block has {BARRIERS},");
            return Err(Trouble::new(lane, ExecFindingKind::Unsupported(text)));
        }
        if together != mask {
            // The others arrive at their own barrier afterwards, from the same place.
            self.split(at, mask & !together, pc);
        }
        let count = barrier.count.map(|source| self.frames[frame].column(source, constants)[lane] as u32);
        let arrival = Arrival {
            warp: self.index,
            lanes: together,
            waits: barrier.kind != BarrierKind::Arrive,
            count,
            pred: self.frames[frame].test(barrier.pred) & together,
            pc,
            aligned: barrier.aligned,
        };
        cta.arrive(number as usize, &arrival);
        if arrival.waits {
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
            self.lane_groups[at].pc = pc + 1;
        }
    }
}
