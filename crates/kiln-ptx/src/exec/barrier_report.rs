//! What is wrong with barriers, as findings and notes.

use super::barrier::{Arrival, Complaint, Met};
use super::block::Cta;
use super::code::BarrierKind;
use super::column::first_lane;
use super::finding::ExecFindingKind;
use super::site::{CodeSite, Line};

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
