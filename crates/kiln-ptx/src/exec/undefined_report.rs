//! How uses of undefined values become findings.

use super::block::Cta;
use super::code_location::{CodeSite, Line};
use super::finding::{AccessKind, BadAccess, ExecFinding, ExecFindingKind};
use super::memory::UndefinedStore;
use super::undefined::{Absence, Origin};
use super::warp_register::LANES;
use crate::PtxFunctionId;

impl Cta<'_> {
    /// Keeps that a step of a lane uses an undefined value.
    pub(crate) fn report_use(&self, warp: usize, lane: usize, pc: u32, origin: Origin) {
        let steps = (pc, origin.pc_or(pc));
        let log = self.launch.log;
        let again = |known: &mut ExecFindingKind| match known {
            ExecFindingKind::Uninitialised { .. } => matches!(origin, Origin::Memory { .. }),
            ExecFindingKind::InactiveLane { .. } => matches!(origin, Origin::Lane { .. }),
            ExecFindingKind::Unassigned { .. } => matches!(origin, Origin::Register { .. }),
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

    /// The store of an undefined value, for those who read it.
    pub(crate) fn undefined_store(
        &self,
        (warp, lane, pc): (usize, usize, u32),
        origin: Origin,
        (bytes, may_be_padding): (u32, bool),
    ) -> UndefinedStore {
        let site = CodeSite::of(self.launch.code, pc).in_thread(self.index, self.thread(warp, lane));
        let mut kind = self.undefined_kind(origin);
        kind.name_variable(&self.launch.code.shared);
        let finding = ExecFinding { kind, site, times: 1 };
        UndefinedStore { finding, bytes, may_be_padding }
    }

    fn undefined_kind(&self, origin: Origin) -> ExecFindingKind {
        match origin {
            Origin::Memory { pc, block, thread, place, address, bytes, bits, .. } => {
                let (warp, lane) = (thread as usize / LANES, thread as usize % LANES);
                let read = CodeSite::of(self.launch.code, pc).in_thread(block, self.thread(warp, lane));
                let (memory, near) = (place.name(), unwritten_part(bits, bytes));
                let (kind, within) = (self.access_at(pc), String::new());
                let access = BadAccess {
                    access: kind,
                    memory,
                    address,
                    bytes,
                    near,
                    within,
                    base: None,
                    mistake: None,
                    block: None,
                };
                ExecFindingKind::Uninitialised { access, read_site: Box::new(read) }
            }
            Origin::Lane { pc, block, thread, from, why } => {
                let (warp, lane) = (thread as usize / LANES, thread as usize % LANES);
                let site = CodeSite::of(self.launch.code, pc).in_thread(block, self.thread(warp, lane));
                let ([x, y, z], place) = (site.thread, Line(&site));
                let text = format!(
                    "inactive lane: an undefined value, which thread ({x},{y},{z}) took by the shuffle at {place} from lane {from}, which {why}"
                );
                ExecFindingKind::InactiveLane { text, has_exited: why == Absence::Exited }
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
            Some(super::lowered_code::Op::Atomic(_)) => AccessKind::Atomic,
            _ => AccessKind::Read,
        }
    }
}

/// Which part of a value was never written, in words that complete "of which ..."; empty for all of it.
fn unwritten_part(bits: u64, bytes: u32) -> String {
    let parts = |size: u32, is_in: &dyn Fn(u32) -> bool| {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for part in (0..size).filter(|part| is_in(*part)) {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == part => *last = part,
                _ => runs.push((part, part)),
            }
        }
        runs
    };
    let text = |noun: &str, runs: &[(u32, u32)]| {
        let is_one = matches!(runs, [(first, last)] if first == last);
        let runs: Vec<String> = runs
            .iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
            .collect();
        match is_one {
            true => format!("{noun} {} was never written", runs.join(", ")),
            false => format!("{noun}s {} were never written", runs.join(", ")),
        }
    };
    let byte = |at: u32| bits >> (8 * at) & 0xff;
    if (0..bytes).all(|at| byte(at) == 0xff) {
        String::new()
    } else if (0..bytes).all(|at| matches!(byte(at), 0 | 0xff)) {
        text("byte", &parts(bytes, &|at| byte(at) == 0xff))
    } else {
        text("bit", &parts(8 * bytes, &|at| bits >> at & 1 != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_was_never_written_is_named() {
        assert_eq!(unwritten_part(0xffff_ffff, 4), "");
        assert_eq!(unwritten_part(0xff00, 4), "byte 1 was never written");
        assert_eq!(unwritten_part(0xffff_ff00, 4), "bytes 1 to 3 were never written");
        assert_eq!(unwritten_part(0xff00_00ff, 4), "bytes 0, 3 were never written");
        assert_eq!(unwritten_part(0xf8, 1), "bits 3 to 7 were never written");
    }
}
