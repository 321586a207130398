//! How races become findings.

use super::block::Cta;
use super::check::{Conflict, ConstantConflict, Copy, GenericWrite, PendingBulk, RaceCause, Touching};
use super::code_location::{CodeSite, Line};
use super::finding::{AccessKind, BadAccess, ExecFindingKind};
use super::memory::generic_address::Place;
use super::warp_register::LANES;

impl Cta<'_> {
    /// Keeps a race of a lane with an earlier access. `same` if both wrote the same value.
    pub(crate) fn report_race(
        &self,
        warp: usize,
        pc: u32,
        access: BadAccess,
        conflict: Conflict,
        same: bool,
    ) {
        let log = self.launch.log;
        let steps = (pc, conflict.pc);
        let again = |known: &mut ExecFindingKind| match known {
            ExecFindingKind::Race { cause, remedy, .. } => {
                let is_known = !same && *cause == conflict.cause;
                // Threads that are further apart race at the same two steps.
                if is_known && remedy.reach().is_some_and(|reach| reach < self.distance(warp, &conflict)) {
                    *remedy = self.barrier(warp, pc, &conflict);
                }
                is_known
            }
            ExecFindingKind::SameValue { .. } => same,
            _ => false,
        };
        if log.count_again(steps, again) {
            return;
        }
        let earlier_site =
            Box::new(self.site_in_grid(conflict.pc, conflict.earlier_warp, conflict.earlier_lane));
        let kind = match same {
            true => ExecFindingKind::SameValue { access, earlier_site },
            false => ExecFindingKind::Race {
                access,
                earlier: conflict.earlier.access(),
                earlier_site,
                cause: conflict.cause,
                remedy: self.remedy(warp, pc, &conflict),
            },
        };
        let note = same && !self.launch.options.checks.strict;
        let thread = self.thread(warp, conflict.lane);
        log.find(self.launch.code, steps, kind, note, |site| site.in_thread(self.index, thread));
    }

    /// Keeps an access to where a copy goes that is not done.
    pub(crate) fn report_pending(&self, warp: usize, lane: usize, pc: u32, access: BadAccess, copy: Copy) {
        let copier = self.thread(copy.warp, copy.lane);
        let copy_site = Box::new(CodeSite::of(self.launch.code, copy.pc).in_thread(self.index, copier));
        let kind = ExecFindingKind::PendingCopy { access, copy_site };
        let thread = self.thread(warp, lane);
        let log = self.launch.log;
        log.find(self.launch.code, (pc, copy.pc), kind, false, |site| site.in_thread(self.index, thread));
    }

    /// The same for a bulk copy.
    pub(crate) fn report_pending_bulk(
        &self,
        warp: usize,
        lane: usize,
        pc: u32,
        access: BadAccess,
        copy: &PendingBulk,
    ) {
        let copy_site = Box::new(self.site_in_grid(copy.pc, copy.warp, copy.lane));
        let kind = ExecFindingKind::PendingCopy { access, copy_site };
        let thread = self.thread(warp, lane);
        let log = self.launch.log;
        log.find(self.launch.code, (pc, copy.pc), kind, false, |site| site.in_thread(self.index, thread));
    }

    /// The block ends: keeps the copies that may still read its shared memory.
    pub(crate) fn report_unfinished_copies(&mut self) {
        let Some(races) = &mut self.races else { return };
        if races.copies.bulk.is_empty() {
            return;
        }
        for (copy, is_committed) in races.copies.bulk.take_unfinished() {
            let bytes = u32::try_from(copy.range.end - copy.range.start).unwrap_or(u32::MAX);
            let access = BadAccess {
                access: AccessKind::Read,
                memory: Place::Shared.name(),
                address: copy.range.start,
                bytes,
                near: String::new(),
                within: String::new(),
                base: None,
                mistake: None,
                block: None,
            };
            let kind = ExecFindingKind::UnfinishedCopy { access, is_committed };
            self.report_in_grid(copy.pc, copy.warp, copy.lane, kind);
        }
    }

    /// Keeps a read through the async proxy of what a thread wrote, with no fence between the two.
    pub(crate) fn report_unfenced(
        &self,
        warp: usize,
        lane: usize,
        pc: u32,
        access: BadAccess,
        write: GenericWrite,
    ) {
        let write_site = Box::new(self.site_in_grid(write.pc, u64::from(write.warp), write.lane.into()));
        let kind = ExecFindingKind::NoProxyFence { access, write_site };
        let thread = self.thread(warp, lane);
        let log = self.launch.log;
        log.find(self.launch.code, (pc, write.pc), kind, false, |site| site.in_thread(self.index, thread));
    }

    /// Keeps a read as a constant of memory that the launch writes.
    pub(crate) fn report_non_coherent(
        &self,
        warp: usize,
        pc: u32,
        access: BadAccess,
        found: ConstantConflict,
    ) {
        let steps = (pc, found.pc);
        let log = self.launch.log;
        if log.count_again(steps, |known| matches!(known, ExecFindingKind::NonCoherent { .. })) {
            return;
        }
        let earlier = if access.access == AccessKind::Read { AccessKind::Write } else { AccessKind::Read };
        let earlier_site =
            Box::new(self.site_in_grid(found.pc, u64::from(found.earlier_warp), found.earlier_lane));
        let kind = ExecFindingKind::NonCoherent { access, earlier, earlier_site };
        let thread = self.thread(warp, found.lane);
        log.find(self.launch.code, steps, kind, false, |site| site.in_thread(self.index, thread));
    }

    /// Keeps a finding about a thread anywhere in the grid.
    pub(crate) fn report_in_grid(&self, pc: u32, warp: u64, lane: usize, kind: ExecFindingKind) {
        let site = self.site_in_grid(pc, warp, lane);
        self.launch.log.find(self.launch.code, (pc, pc), kind, false, |_| site);
    }

    /// Where a step is, in words.
    pub(crate) fn line_of(&self, pc: u32) -> String {
        Line(&CodeSite::of(self.launch.code, pc)).to_string()
    }

    /// A step in a thread anywhere in the grid.
    fn site_in_grid(&self, pc: u32, warp: u64, lane: usize) -> CodeSite {
        let shape = &self.launch.shape;
        let warps = shape.threads().div_ceil(LANES as u64).max(1);
        let block = self.launch.block_index(warp / warps);
        CodeSite::of(self.launch.code, pc).in_thread(block, self.thread((warp % warps) as usize, lane))
    }
}

impl Conflict {
    /// Whether both are plain writes.
    pub(crate) fn is_between_writes(&self, kind: Touching) -> bool {
        kind == Touching::Write && self.earlier == Touching::Write && self.cause == RaceCause::Unordered
    }
}
