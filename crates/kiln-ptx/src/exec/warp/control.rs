//! Branches and the end of threads.

use super::lane_group::LaneGroup;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{PredSource, Source, Step};
use crate::exec::path_tree::Decision;
use crate::exec::warp_register::{first_lane, lanes_where};

impl Warp {
    /// Goes to `target` in the lanes where `when` holds.
    pub(super) fn branch(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        target: u32,
        when: PredSource,
        step: &Step,
    ) -> Flow {
        let LaneGroup { mask, pc, .. } = self.lane_groups[at];
        let taken = self.holds(at, when);
        if taken != 0 && taken != mask {
            self.split(at, taken, target);
            self.lane_groups[at].pc = pc + 1;
            let split = self.lane_groups.len() - 1;
            if step.decides & 1 != 0 {
                self.decide(cta, split, Decision { at: pc, to: target });
            }
            if step.decides & 2 != 0 {
                self.decide(cta, at, Decision { at: pc, to: pc + 1 });
            }
            return Flow::Switch;
        }
        let (flow, to) = if taken == 0 { (Flow::Next, pc + 1) } else { (Flow::Jump(target), target) };
        if step.decides & (1 + u8::from(taken == 0)) != 0 {
            self.decide(cta, at, Decision { at: pc, to });
        }
        flow
    }

    /// Keeps a decision in the way of a lane group.
    pub(super) fn decide(&mut self, cta: &mut Cta<'_>, at: usize, decision: Decision) {
        let path = &mut self.lane_groups[at].path;
        *path = cta.paths.follow(*path, decision);
    }

    /// Goes where a table says.
    pub(super) fn table(
        &mut self,
        cta: &mut Cta<'_>,
        at: usize,
        index: Source,
        targets: &[u32],
    ) -> Done<Flow> {
        let LaneGroup { mask, frame, pc, .. } = self.lane_groups[at];
        let is_kept = Self::code(cta).steps.get(pc as usize).is_some_and(|step| step.decides != 0);
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
            let decision = Decision { at: pc, to: first };
            if together == rest {
                self.lane_groups[at].pc = first;
                if is_kept {
                    self.decide(cta, at, decision);
                }
                return Ok(if together == mask { Flow::Stay } else { Flow::Switch });
            }
            self.split(at, together, first);
            if is_kept {
                self.decide(cta, self.lane_groups.len() - 1, decision);
            }
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
