//! Findings about kernels, with the arguments of their launches.

use std::sync::Arc;

use kiln_ptx::exec::{
    AccessKind, AddressBase, BadAccess, ExecFinding as InCode, ExecFindingKind as InCodeKind,
};

use crate::check::access_origin::Mark;
use crate::check::declared_memory::LaunchFootprint;
use crate::check::finding::{Finding, FindingKind, Touching};
use crate::check::undefined_value::UndefinedValue;
use crate::code::kernel::{KernelFault, Mistake, Notes};
use crate::memory::heap_block_table::PartAt;
use crate::memory::memory_view::MemoryView;
use crate::schedule::machine_state::State;

impl State {
    /// Takes over what a kernel said while it ran. The answer is what ended it, in the words of its finding.
    pub(crate) fn note(
        &mut self,
        device: u32,
        mut notes: Notes,
        view: &MemoryView,
        result: &Result<(), KernelFault>,
        mark: &Arc<Mark>,
    ) -> Option<String> {
        notes.sort();
        let mut told = None;
        for mistake in notes.findings {
            let repeat = self.repeat();
            let (kind, subject, code) = match mistake {
                Mistake::Text(text) => (FindingKind::InKernel, text, None),
                Mistake::Found(mut finding) => {
                    let is_fatal = finding.kind.fault().is_some() && result.is_err();
                    name_argument(&mut finding.kind, view.footprint());
                    self.name_part(device, &mut finding.kind, mark);
                    self.name_freed(device, &mut finding.kind, mark);
                    let mut text = tell(&finding, view.footprint());
                    if let Some(earlier) = self.stored_before(device, &finding.kind) {
                        text.push_str(&format!(
                            "; an earlier launch stored an undefined value there. {}",
                            earlier.store.finding
                        ));
                    }
                    if is_fatal {
                        told = Some(text.clone());
                    }
                    (kind_of(&finding), text, Some(finding))
                }
            };
            self.find(Finding {
                kind,
                device,
                subject,
                bytes: None,
                address: None,
                first: None,
                second: Some(mark.actor.clone()),
                code,
                repeat,
            });
        }
        self.journal.print(&notes.printed);
        self.journal.leave_out(notes.left_out);
        told
    }

    /// The undefined value that an earlier launch stored to where a kernel read.
    pub(crate) fn stored_before(&mut self, device: u32, kind: &InCodeKind) -> Option<Arc<UndefinedValue>> {
        let InCodeKind::Uninitialised { access, .. } = kind else { return None };
        if access.memory != "global" {
            return None;
        }
        let map = self.device(device).map.clone();
        let segment = map.segments().get(map.index_of(access.address)?)?;
        let place = segment.place_of(access.address);
        let shadow = segment.physical.shadow();
        (place..place + u64::from(access.bytes)).find_map(|at| shadow.value_at(at))
    }

    /// Where no memory is now, a block may have lain that was freed, or one of another device lies there.
    fn name_freed(&mut self, device: u32, kind: &mut InCodeKind, mark: &Arc<Mark>) {
        let InCodeKind::OutOfBounds(bad) = kind else { return };
        if bad.memory != "global" || self.device(device).map.index_of(bad.address).is_some() {
            return;
        }
        let near = match self.part_at(device, bad.address, mark) {
            Some(PartAt::Ended(ended)) => ended.words(bad.address),
            _ => {
                let Some(tomb) = self.device(device).graveyard.find(bad.address) else {
                    if let Some(near) = self.memory_of_another(device, bad.address) {
                        bad.near = near;
                    }
                    return;
                };
                let (region, death) = (&tomb.region, &tomb.death);
                format!("byte {} of {}, freed by {}", bad.address - region.address, region.name, death.actor)
            }
        };
        *kind = InCodeKind::UseAfterFree(BadAccess { near, ..bad.clone() });
    }

    /// What lies at an address on a device that this one does not reach.
    fn memory_of_another(&mut self, device: u32, address: u64) -> Option<String> {
        let others = (0..).zip(&self.devices).filter(|(other, _)| *other != device);
        let (other, region) = others.into_iter().find_map(|(other, theirs)| {
            let segment = theirs.map.segments().get(theirs.map.index_of(address)?)?;
            Some((other, &segment.region))
        })?;
        let at = address.saturating_sub(region.address);
        Some(format!(
            "byte {at} of {} of device {other}, whose memory device {device} does not reach without peer access",
            region.name
        ))
    }
}

/// Names the argument that an address was computed from which missed every buffer: another one may lie nearer.
fn name_argument(kind: &mut InCodeKind, footprint: Option<&LaunchFootprint>) {
    let (InCodeKind::OutOfBounds(bad) | InCodeKind::Undeclared(bad)) = kind else { return };
    let (Some(AddressBase::Argument { offset }), Some(footprint)) = (&bad.base, footprint) else { return };
    let range = bad.address..bad.address.saturating_add(u64::from(bad.bytes));
    if let Some(near) = footprint.near_argument(range, *offset) {
        bad.near = near;
    }
}

/// A finding of the executor of PTX, with the argument that the access belongs to.
fn tell(finding: &InCode, footprint: Option<&LaunchFootprint>) -> String {
    let text = finding.to_string();
    let text = text.trim_end_matches('.');
    let access = match &finding.kind {
        InCodeKind::Misaligned(access)
        | InCodeKind::Uninitialised { access, .. }
        | InCodeKind::Race { access, .. }
        | InCodeKind::SameValue { access, .. } => access,
        _ => return text.to_owned(),
    };
    let BadAccess { memory, address, .. } = access;
    let place = footprint.filter(|_| *memory == "global").and_then(|footprint| footprint.place(*address));
    match place {
        Some(place) => {
            let access = access.to_string();
            text.replacen(&access, &format!("{access} ({place})"), 1)
        }
        None => text.to_owned(),
    }
}

/// The kind of a finding of the executor of PTX.
fn kind_of(finding: &InCode) -> FindingKind {
    let (kind, access) = match &finding.kind {
        InCodeKind::Undeclared(access) if access.access == AccessKind::Read => {
            (FindingKind::Undeclared(Touching::Reading), access)
        }
        InCodeKind::Undeclared(access) => (FindingKind::Undeclared(Touching::Writing), access),
        InCodeKind::OutOfBounds(access) => (FindingKind::OutOfBounds, access),
        InCodeKind::UseAfterFree(access) => (FindingKind::UseAfterFree, access),
        InCodeKind::ReadOnly(access) => (FindingKind::ReadOnly, access),
        InCodeKind::Uninitialised { access, .. } => (FindingKind::Uninitialised, access),
        _ => return FindingKind::InKernel,
    };
    if access.memory == "global" { kind } else { FindingKind::InKernel }
}
