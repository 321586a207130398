//! Branches and the end of threads.

use super::lane_group::LaneGroup;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{PredSource, Source, Step};
use crate::exec::warp_register::{first_lane, lanes_where};

impl Warp {
    /// Goes to `target` in the lanes where `when` holds.
    pub(super) fn branch(&mut self, at: usize, target: u32, when: PredSource, step: &Step) -> Flow {
        let is_round = step.is_round;
        let LaneGroup { mask, pc, .. } = self.lane_groups[at];
        let taken = self.holds(at, when);
        self.lane_groups[at].last_branch = Some(pc);
        self.lane_groups[at].passed |= step.passed();
        if taken == mask {
            if is_round {
                self.lane_groups[at].count_round();
            }
            return Flow::Jump(target);
        }
        if taken == 0 {
            return Flow::Next;
        }
        self.split(at, taken, target);
        if let Some(lane_group) = self.lane_groups.last_mut().filter(|_| is_round) {
            lane_group.count_round();
        }
        self.lane_groups[at].pc = pc + 1;
        Flow::Switch
    }

    /// Goes where a table says.
    pub(super) fn table(&mut self, cta: &Cta<'_>, at: usize, index: Source, targets: &[u32]) -> Done<Flow> {
        let LaneGroup { mask, frame, .. } = self.lane_groups[at];
        let indices = *self.frames[frame].column(index, &cta.launch.constants);
        let outside = lanes_where(mask, |lane| indices[lane] >= targets.len() as u64);
        if outside != 0 {
            let lane = first_lane(outside);
            let text = format!(
                "the index {} of the branch is outside of its table, which has {} targets; check the index before the branch",
                indices[lane],
                targets.len()
            );
            return Err(Trouble::new(lane, ExecFindingKind::BadOperand(text)));
        }
        let target = |lane: usize| targets.get(indices[lane] as usize).copied().unwrap_or(0);
        let mut rest = mask;
        loop {
            let first = target(first_lane(rest));
            let together = lanes_where(rest, |lane| target(lane) == first);
            if together == rest {
                self.lane_groups[at].pc = first;
                return Ok(if together == mask { Flow::Stay } else { Flow::Switch });
            }
            self.split(at, together, first);
            rest &= !together;
        }
    }

    /// Ends all threads of a lane group.
    pub(super) fn exit(&mut self, cta: &mut Cta<'_>, at: usize) -> Flow {
        let lane_group = self.lane_groups.swap_remove(at);
        self.frames.exit(lane_group.frame, lane_group.mask);
        self.live &= !lane_group.mask;
        cta.leave(self.index, self.live, &lane_group);
        // Other lanes may have waited for these alone.
        self.fire_collectives(cta);
        Flow::Switch
    }
}
