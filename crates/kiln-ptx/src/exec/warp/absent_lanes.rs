//! Lanes that a warp-level operation names or reads from, and that do not execute it.

use super::Warp;
use super::lane_group::LaneGroup;
use super::warp_primitives::{Gathered, source_lane};
use crate::Shuffle;
use crate::exec::block::Cta;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::Op;
use crate::exec::undefined::Absence;
use crate::exec::warp_register::{each, first_lane};

impl Warp {
    /// Tells of lanes that a mask names and that have exited. PTX waits for the others alone, and the result is that of the others, which is seldom
    /// what a program means. It is a mistake for certain if they went around the instruction and on with the code behind it: CUDA C wants
    /// every thread that a mask names and that has not exited to execute it. Lanes that the block never had are noted by strict checks.
    pub(super) fn tell_absent_lanes(&self, cta: &Cta<'_>, at: usize, named: u32, here: u32) {
        let checks = cta.launch.options.checks;
        let had = cta.lanes(self.index);
        let absent = named & !here & if checks.strict { u32::MAX } else { had };
        if absent == 0 || !checks.barriers {
            return;
        }
        let LaneGroup { mask, pc, .. } = self.lane_groups[at];
        if cta.launch.log.count_again((pc, pc), |known| matches!(known, ExecFindingKind::Mask(_))) {
            return;
        }
        let lane = first_lane(mask);
        let unlike = absent & self.lane_groups[at].unlike;
        if unlike != 0 {
            let lanes = counted(unlike, ["executes", "execute"], "this instruction with another mask");
            let text =
                format!("the mask {named:#010x} names {lanes}; give one mask to all lanes that it names");
            return cta.report(self.index, lane, pc, ExecFindingKind::Mask(text));
        }
        let around = cta.lanes_gone_around(&self.steps_behind(at), self.index, absent & had);
        if around != 0 {
            let lanes =
                counted(around, ["took", "took"], "another path around this instruction and then ended");
            let text = format!(
                "the mask {named:#010x} names {lanes}; \
                 execute it in all lanes that the mask names, or name only the lanes that take this path"
            );
            return cta.report(self.index, lane, pc, ExecFindingKind::Mask(text));
        }
        let lanes = counted(absent, ["has", "have"], "exited or never existed");
        let them = if absent.count_ones() == 1 { "it, and it adds" } else { "them, and they add" };
        let text = format!(
            "the mask {named:#010x} names {lanes}: the instruction does not wait for {them} nothing to its result; \
             name the lanes that execute it"
        );
        cta.report_note(self.index, lane, pc, ExecFindingKind::Mask(text));
    }

    /// The steps behind that of a lane group: the next one, and those behind the calls of the functions it is in.
    pub(super) fn steps_behind(&self, at: usize) -> Vec<u32> {
        let LaneGroup { pc, frame, .. } = self.lane_groups[at];
        let mut behind = vec![pc + 1];
        let mut called = &self.frames[frame];
        while let Some(parent) = called.parent {
            behind.push(called.return_to);
            called = &self.frames[parent];
        }
        behind
    }

    /// Why a lane that a shuffle reads from does not take part in it.
    pub(super) fn absence(&self, cta: &Cta<'_>, pc: u32, from: usize) -> Absence {
        let step = Self::code(cta).steps.get(pc as usize);
        let has_mask = matches!(step.map(|step| &step.op), Some(Op::Collective(collective)) if collective.members.is_some());
        match self.live >> from & 1 {
            0 => Absence::Exited,
            _ if has_mask => Absence::NotNamed,
            _ => Absence::Inactive,
        }
    }

    /// Reports lanes that take a value from a lane that does not take part, where undefined values are not followed to their use.
    pub(super) fn report_untaken(
        &self,
        cta: &Cta<'_>,
        gathered: &Gathered,
        mode: Shuffle,
        undefined: u32,
        pc: u32,
    ) {
        let checks = cta.launch.options.checks;
        if checks.uninitialised || !checks.barriers {
            return;
        }
        let [_, by, clamp] = &gathered.values;
        each(undefined, |lane| {
            let from = source_lane(mode, lane, by[lane], clamp[lane]).0;
            let why = self.absence(cta, pc, from);
            let text =
                format!("lane {lane} takes a value from lane {from}, which {why}: the value is undefined");
            let has_exited = why == Absence::Exited;
            cta.report(self.index, lane, pc, ExecFindingKind::InactiveLane { text, has_exited });
        });
    }
}

/// `1 lane that has exited, lane 5`, `16 lanes that have exited, lane 16 the first`. The verbs are those for one and for many.
fn counted(lanes: u32, verbs: [&str; 2], rest: &str) -> String {
    let first = first_lane(lanes);
    match lanes.count_ones() {
        1 => format!("1 lane that {} {rest}, lane {first}", verbs[0]),
        count => format!("{count} lanes that {} {rest}, lane {first} the first", verbs[1]),
    }
}
