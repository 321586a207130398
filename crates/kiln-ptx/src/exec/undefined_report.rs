//! How uses of undefined values become findings.

use std::sync::Arc;

use super::block::Cta;
use super::column::LANES;
use super::finding::{AccessKind, BadAccess, ExecFinding, ExecFindingKind};
use super::site::CodeSite;
use super::undefined::Origin;
use crate::PtxFunctionId;

impl Cta<'_> {
    /// Keeps that a step of a lane uses an undefined value.
    pub(crate) fn report_use(&self, warp: usize, lane: usize, pc: u32, origin: Origin) {
        let steps = (pc, origin.pc_or(pc));
        let log = self.launch.log;
        let again = |known: &ExecFindingKind| match known {
            ExecFindingKind::Uninitialised { .. } => origin.is_memory(),
            ExecFindingKind::Unassigned { .. } => !origin.is_memory(),
            _ => false,
        };
        if log.count_again(steps, again) {
            return;
        }
        let thread = self.thread(warp, lane);
        log.find(self.launch.code, steps, self.undefined_kind(origin), false, |site| {
            site.in_thread(self.index, thread)
        });
    }

    /// Notes that a whole value is copied to global memory that is undefined.
    pub(crate) fn note_copy(&self, warp: usize, lane: usize, pc: u32, origin: Origin) {
        let steps = (pc, origin.pc_or(pc));
        let log = self.launch.log;
        if log.count_again(steps, |known| matches!(known, ExecFindingKind::UndefinedCopy(_))) {
            return;
        }
        let kind = ExecFindingKind::UndefinedCopy(Box::new(self.undefined_kind(origin)));
        let thread = self.thread(warp, lane);
        log.find(self.launch.code, steps, kind, true, |site| site.in_thread(self.index, thread));
    }

    /// The store of an undefined value, as a finding: for those who read the copy.
    pub(crate) fn copied(&self, warp: usize, lane: usize, pc: u32, origin: Origin) -> Arc<ExecFinding> {
        let site = CodeSite::of(self.launch.code, pc).in_thread(self.index, self.thread(warp, lane));
        Arc::new(ExecFinding { kind: self.undefined_kind(origin), site, times: 1 })
    }

    fn undefined_kind(&self, origin: Origin) -> ExecFindingKind {
        match origin {
            Origin::Memory { pc, block, thread, place, address, bytes } => {
                let (warp, lane) = (thread as usize / LANES, thread as usize % LANES);
                let read = CodeSite::of(self.launch.code, pc).in_thread(block, self.thread(warp, lane));
                let (memory, near) = (place.name(), String::new());
                let access = BadAccess { access: self.access_at(pc), memory, address, bytes, near };
                ExecFindingKind::Uninitialised { access, read_site: Box::new(read) }
            }
            Origin::Register { function, register } => {
                let code = self.launch.code;
                let name = code.functions.get(function as usize).and_then(|function| {
                    let registers = &code.module.function(PtxFunctionId(function.id))?.registers;
                    registers.name(crate::RegisterId(register))
                });
                ExecFindingKind::Unassigned { register: name.unwrap_or_default() }
            }
        }
    }

    /// What the step that read undefined bytes does to memory.
    fn access_at(&self, pc: u32) -> AccessKind {
        match self.launch.code.steps.get(pc as usize).map(|step| &step.op) {
            Some(super::code::Op::Atomic(_)) => AccessKind::Atomic,
            _ => AccessKind::Read,
        }
    }
}
