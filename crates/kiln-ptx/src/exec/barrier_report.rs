//! What is wrong with barriers, as findings and notes.

use super::barrier::{Arrival, Complaint, Met};
use super::block::Cta;
use super::code_location::{CodeSite, Line};
use super::finding::ExecFindingKind;
use super::lowered_code::BarrierKind;
use super::path_tree::Path;
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
            Complaint::OtherWay { .. } => "is reached by a diverged warp: other threads of it came here in another pass of a loop, or by another branch; put \
                 the barrier where all threads of the block reach it equally often"
                .to_owned(),
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

    /// Whether a complaint about an arrival holds. Lanes that come to an instruction apart may have come the same way.
    pub(super) fn is_founded(&self, arrival: &Arrival, complaint: Complaint) -> bool {
        let Complaint::OtherWay { other } = complaint else { return true };
        let (own, other) = ((arrival.pc, arrival.path), (arrival.pc, other));
        !self.is_astray.get() && self.differ(own, other) == Some(true) && !self.is_astray.replace(true)
    }

    /// Whether a barrier is a `__syncthreads()` of CUDA C, as far as the PTX tells: it has a line of the source, and is not in inline assembly.
    fn is_cuda(&self, pc: u32) -> bool {
        let code = self.launch.code;
        code.source_line(pc).is_some() && !code.is_inline_assembly(pc)
    }

    /// Tells of a barrier of the whole block that warps reach at different places, or on different ways: CUDA C wants the same `__syncthreads()` for all
    /// threads, in the same pass of each loop. Where a way is not known, places of one source line and column are the same: compilers make copies of a
    /// barrier when they unroll a loop. PTX itself allows all this, so in inline assembly, and without lines, it is a note if the checks are strict.
    pub(super) fn tell_other_ways(&self, number: usize, met: &Met) {
        let code = self.launch.code;
        let line = |pc: u32| code.source_line(pc);
        let first = (met.pc, met.path);
        let is_other = |(pc, path, _): &(u32, Path, usize)| match self.differ(first, (*pc, *path)) {
            Some(true) => true,
            Some(false) => false,
            None => *pc != met.pc && (line(met.pc).is_none() || line(*pc) != line(met.pc)),
        };
        if self.is_astray.get() {
            return;
        }
        let Some((pc, path, warp)) = met.others.iter().copied().find(is_other) else { return };
        let place = |pc: u32| Line(&CodeSite::of(code, pc)).to_string();
        let begin = match pc == met.pc {
            true => {
                let [x, y, z] = self.thread(warp, first_lane(met.arrived[warp]));
                format!(
                    "barrier {number} is reached by some warps in another pass of a loop than by others, or by another branch, \
                     thread ({x},{y},{z}) among them"
                )
            }
            false => format!("barrier {number} is reached by some warps here and by others at {}", place(pc)),
        };
        let parting = self.parting(first, path).or_else(|| self.parting((pc, path), met.path));
        let parting =
            parting.map_or(String::new(), |parting| format!("; they part at {}", place(parting.at)));
        let here = met.waiting.iter().position(|lanes| *lanes != 0).unwrap_or(0);
        let lane = first_lane(met.waiting.get(here).copied().unwrap_or(1));
        if self.is_cuda(met.pc) && self.is_cuda(pc) && met.aligned {
            self.is_astray.set(true);
            let text = format!(
                "{begin}{parting}: put the barrier where all threads of the block reach the same `__syncthreads()` equally often"
            );
            self.report(here, lane, met.pc, ExecFindingKind::Barrier(text));
        } else if self.launch.options.checks.strict {
            self.report_note(here, lane, met.pc, ExecFindingKind::Barrier(begin + &parting));
        }
    }

    /// Tells of threads that ended without a barrier of their block. Whole warps that exit early are common and harmless; a part of a warp may be
    /// a barrier in a branch. It is one for certain if those threads went around it, see [`Self::lanes_around`].
    pub(super) fn tell_absent(&self, number: usize, met: &Met) {
        let strict = self.launch.options.checks.strict;
        let lanes = || self.existing.iter().zip(&met.arrived);
        let is_part = |(all, here): (&u32, &u32)| all & !here != 0 && all & here != 0;
        let is_told = |pair: (&u32, &u32)| is_part(pair) || strict && pair.0 & !pair.1 != 0;
        let is_cuda = self.is_cuda(met.pc);
        let is_checked = |pair| met.aligned && !self.is_astray.get() && (is_cuda || is_part(pair));
        let around = lanes().enumerate().filter(|(_, pair)| is_checked(*pair)).find_map(|(warp, pair)| {
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
