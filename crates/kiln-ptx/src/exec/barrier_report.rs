//! What is wrong with barriers, as findings and notes.

use super::barrier::{Arrival, Complaint, Met};
use super::block::Cta;
use super::code_location::{CodeSite, Line};
use super::finding::ExecFindingKind;
use super::lowered_code::BarrierKind;
use super::warp_register::first_lane;

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

    /// Tells of a barrier of the whole block that warps reach at different places: CUDA C wants the same `__syncthreads()` for all threads. Compilers make
    /// copies of a barrier when they unroll a loop or split a branch, so places of one source line and column are the same. Without lines it is a
    /// note, if the checks are strict.
    pub(super) fn tell_two_places(&self, number: usize, met: &Met) {
        let code = self.launch.code;
        let line = |pc: u32| code.source_line(pc);
        let first = line(met.pc);
        let Some(other) = met.other_pcs.iter().copied().find(|pc| first.is_none() || line(*pc) != first)
        else {
            return;
        };
        let begin = format!(
            "barrier {number} is reached by some warps here and by others at {}",
            Line(&CodeSite::of(code, other))
        );
        let here = met.waiting.iter().position(|lanes| *lanes != 0).unwrap_or(0);
        let lane = first_lane(met.waiting.get(here).copied().unwrap_or(1));
        if first.is_some() && line(other).is_some() && met.aligned {
            let text = format!(
                "{begin}: put the barrier where all threads of the block reach the same `__syncthreads()`"
            );
            self.report(here, lane, met.pc, ExecFindingKind::Barrier(text));
        } else if self.launch.options.checks.strict {
            self.report_note(here, lane, met.pc, ExecFindingKind::Barrier(begin));
        }
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
