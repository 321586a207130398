//! What is wrong with barriers, as findings and notes.

use super::barrier::{Arrival, Complaint, Met};
use super::block::Cta;
use super::code_location::{CodeSite, Line};
use super::finding::ExecFindingKind;
use super::lowered_code::{BarrierKind, Op, Step};
use super::warp_register::{first_lane, lanes_where};

impl Cta<'_> {
    /// Keeps what is wrong with an arrival.
    pub(crate) fn complain(&self, number: usize, arrival: &Arrival, complaint: Complaint) {
        if !self.launch.options.checks.barriers {
            return;
        }
        let text = format!("barrier {number} {}", self.words(arrival, complaint));
        self.report(arrival.warp, first_lane(arrival.lanes), arrival.pc, ExecFindingKind::Barrier(text));
    }

    fn words(&self, arrival: &Arrival, complaint: Complaint) -> String {
        let place = |pc: u32| Line(&CodeSite::of(self.launch.code, pc)).to_string();
        match complaint {
            Complaint::Diverged { other_pc } => format!(
                "is reached by a diverged warp: other threads of it are at the barrier at {}",
                place(other_pc)
            ),
            Complaint::CountDiffers { first, second } => {
                let words =
                    |count: Option<u32>| count.map_or("all threads".to_owned(), |n| format!("{n} threads"));
                format!(
                    "is used with different counts at once: for {} and for {}",
                    words(first),
                    words(second)
                )
            }
            Complaint::KindDiffers { other, other_pc } => format!(
                "is used in two ways at once: some threads {}, and others {} at {}; use two barriers, or one instruction for all",
                deed(arrival.kind),
                deed(other),
                place(other_pc)
            ),
            Complaint::ArrivesAgain { other_pc } => format!(
                "is arrived at twice by the same threads before it completes, first at {}: the threads that wait may go on too early; let a \
                 thread wait for the barrier before it arrives again",
                place(other_pc)
            ),
            Complaint::Count(bad) => bad.words(),
        }
    }

    /// Notes a barrier of the whole block that warps reach at different places: CUDA C wants the same `__syncthreads()` for all threads.
    pub(super) fn note_two_places(&self, number: usize, met: &Met) {
        let Some(other) = met.other_pc else { return };
        let (first, second) = (CodeSite::of(self.launch.code, met.pc), CodeSite::of(self.launch.code, other));
        if first.source.is_some() && first.source == second.source {
            return;
        }
        let text =
            format!("barrier {number} is reached by some warps here and by others at {}", Line(&second));
        self.report_note(0, 0, met.pc, ExecFindingKind::Barrier(text));
    }

    /// Tells of threads that ended without a barrier of their block. Whole warps that exit early are common and harmless; a part of a warp may be
    /// a barrier in a branch. It is one for certain if those threads went on with code that lies behind the barrier as well, or went through the
    /// loop around the barrier once more than the others.
    pub(super) fn tell_absent(&self, number: usize, met: &Met) {
        let strict = self.launch.options.checks.strict;
        let lanes = || self.existing.iter().zip(&met.arrived);
        let is_part = |(all, here): (&u32, &u32)| all & !here != 0 && all & here != 0;
        let is_told = |pair: (&u32, &u32)| is_part(pair) || strict && pair.0 & !pair.1 != 0;
        let around = lanes().enumerate().filter(|_| met.aligned).find_map(|(warp, pair)| {
            let around = self.lanes_around(met, warp, pair.0 & !pair.1, is_part(pair));
            (around != 0).then_some((warp, first_lane(around)))
        });
        let exited = || {
            let warp = lanes().position(is_told)?;
            Some((warp, first_lane(self.existing[warp] & !met.arrived[warp])))
        };
        let Some((warp, lane)) = around.or_else(exited) else { return };
        let missing: u32 = lanes().map(|(all, here)| (all & !here).count_ones()).sum();
        let [x, y, z] = self.thread(warp, lane);
        let here = met.waiting.iter().position(|lanes| *lanes != 0).unwrap_or(0);
        let lane = first_lane(met.waiting.get(here).copied().unwrap_or(1));
        let begin = format!("barrier {number} is not reached by all threads of the block");
        if around.is_some() {
            let text = format!(
                "{begin}: {missing} took another path around it and have ended, thread ({x},{y},{z}) among them; put the barrier where all \
                 threads of the block reach it"
            );
            return self.report(here, lane, met.pc, ExecFindingKind::Barrier(text));
        }
        let text = format!("{begin}: {missing} exited before it, thread ({x},{y},{z}) the first");
        self.report_note(here, lane, met.pc, ExecFindingKind::Barrier(text));
    }

    /// The lanes among those that have ended without a barrier which went around it.
    fn lanes_around(&self, met: &Met, warp: usize, absent: u32, is_part: bool) -> u32 {
        let exits = &self.exits[warp];
        let ahead = lanes_where(absent, |lane| exits[lane].is_ahead_of(met, self.barriers_met));
        if ahead != 0 && self.launch.code.leads_to(met.pc + 1, met.pc) {
            return ahead;
        }
        if is_part { self.lanes_gone_around(&met.behind, warp, absent) } else { 0 }
    }

    /// The lanes that ran code which also lies behind a step before they exited. An early `return` leads to the last instruction alone. `behind` is the
    /// next step, and those behind the calls that lead to it.
    pub(crate) fn lanes_gone_around(&self, behind: &[u32], warp: usize, lanes: u32) -> u32 {
        let mut known: Option<(u32, bool)> = None;
        lanes_where(lanes, |lane| {
            let exit = self.exits[warp][lane].pc;
            match known {
                Some((at, around)) if at == exit => around,
                _ => {
                    let around = self.goes_around(behind, exit);
                    known = Some((exit, around));
                    around
                }
            }
        })
    }

    fn goes_around(&self, behind: &[u32], exit: u32) -> bool {
        let code = &self.launch.code;
        let steps = &code.steps;
        // The function in which the threads exited.
        let starts = code.functions.iter().map(|function| function.start);
        let start = starts.filter(|start| *start <= exit).max().unwrap_or(0);
        let targets = steps.iter().flat_map(|step| step.op.targets());
        let Some(entered) = targets.copied().filter(|target| (start..=exit).contains(target)).max() else {
            return false;
        };
        let is_code = |step: &Step| !matches!(step.op, Op::Nothing | Op::Exit | Op::Return);
        let ran = steps.get(entered as usize..exit as usize).unwrap_or_default();
        ran.iter().any(is_code) && behind.iter().any(|step| code.leads_to(*step, entered))
    }

    /// Notes barriers at which threads have arrived and no thread was left to complete them.
    pub(super) fn note_open_barriers(&self) {
        if !self.launch.options.checks.barriers {
            return;
        }
        for (number, barrier) in self.barriers.iter().enumerate() {
            let Some((count, arrived, pc)) = barrier.open() else { continue };
            let wanted = count.map_or("all".to_owned(), |count| count.to_string());
            let text = format!(
                "barrier {number} is left incomplete: {arrived} of {wanted} threads arrived, and the block has ended"
            );
            self.report_note(0, 0, pc, ExecFindingKind::Barrier(text));
        }
    }
}

/// What threads do at a barrier.
fn deed(kind: BarrierKind) -> &'static str {
    match kind {
        BarrierKind::Sync => "wait",
        BarrierKind::Arrive => "arrive",
        BarrierKind::CountTrue => "count predicates (`red.popc`)",
        BarrierKind::AllTrue => "ask whether all predicates hold (`red.and`)",
        BarrierKind::AnyTrue => "ask whether any predicate holds (`red.or`)",
    }
}
