//! The rules about memory, applied to what was really touched.

use std::ops::Range;
use std::sync::Arc;

use kiln_driver::call::Call;
use kiln_driver::{DeviceAddress, Error, Refusal};

use crate::check::access_origin::{Actor, Mark};
use crate::check::byte_shadow::{Conflict, Touch};
use crate::check::finding::{Finding, FindingKind, Touching};
use crate::check::undefined_memory::undefine;
use crate::code::kernel::SimParameter;
use crate::device::objects::HostMemory;
use crate::machine_config::Mode;
use crate::memory::address_map::Segment;
use crate::memory::heap_block_table::{Part, PartAt};
use crate::memory::memory_identity::Region;
use crate::memory::memory_view::{AccessCause, AccessFault, MemoryView};
use crate::memory::physical_memory::Physical;
use crate::schedule::machine_state::State;
use crate::schedule::scheduling_choice::Schedule;
use crate::schedule::task::LaunchTask;

/// An access this far past the end of a block was meant for the block.
const NEAR_BYTES: u64 = 64 << 10;

/// Bytes that are accessed, with the block they belong to.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) physical: Arc<Physical>,
    pub(crate) region: Arc<Region>,
    /// Where the region begins in the memory behind it.
    pub(crate) offset: u64,
    /// Which bytes of the region.
    pub(crate) bytes: Range<u64>,
}

impl Stretch {
    pub(crate) fn of_segment(segment: &Segment, bytes: Range<u64>) -> Self {
        let (physical, region) = (segment.physical.clone(), segment.region.clone());
        Self { physical, region, offset: segment.offset, bytes }
    }

    pub(crate) fn of_host(memory: &HostMemory, bytes: Range<u64>) -> Self {
        Self { physical: memory.physical.clone(), region: memory.region.clone(), offset: 0, bytes }
    }

    /// Where the bytes lie in the memory behind them.
    pub(crate) fn place(&self) -> Range<u64> {
        self.offset + self.bytes.start..self.offset + self.bytes.end
    }

    pub(crate) fn with_bytes(&self, bytes: Range<u64>) -> Self {
        Self { bytes, ..self.clone() }
    }
}

impl State {
    /// Records an access and compares it with those before.
    pub(crate) fn check_touch(&mut self, stretch: &Stretch, touch: Touch, mark: &Arc<Mark>) {
        if self.checks.lifetimes && !stretch.region.born.is_before(mark) {
            let born = stretch.region.born.clone();
            self.find_in(FindingKind::UseBeforeAllocation, stretch, Some(&born), Some(mark));
        }
        if !self.checks.accesses() {
            return;
        }
        let mut conflicts = Vec::new();
        stretch.physical.shadow().touch(stretch.place(), touch, mark, &mut conflicts);
        if self.checks.races {
            conflicts.into_iter().for_each(|conflict| self.find_race(stretch, conflict, touch, mark));
        }
    }

    /// Reports a block that goes away while it may still be used.
    pub(crate) fn check_end(&mut self, stretch: &Stretch, death: &Arc<Mark>) {
        if !self.checks.lifetimes {
            return;
        }
        let unknown = stretch.physical.shadow().first_unknown(stretch.place(), &death.clock);
        if let Some((place, user, _)) = unknown {
            let bytes = place.start - stretch.offset..place.end - stretch.offset;
            let stretch = stretch.with_bytes(bytes);
            self.find_in(FindingKind::FreeBeforeDone, &stretch, Some(&user), Some(death));
        }
    }

    /// Reports the use of a host block that was given back.
    pub(crate) fn check_host_alive(&mut self, memory: &HostMemory, bytes: Range<u64>, mark: &Arc<Mark>) {
        if let (true, Some(death)) = (self.checks.lifetimes, memory.death.get()) {
            let stretch = Stretch::of_host(memory, bytes);
            self.find_in(FindingKind::UseAfterFree, &stretch, Some(&death.clone()), Some(mark));
        }
    }

    /// Takes over what a kernel touched.
    pub(crate) fn check_kernel(&mut self, view: &MemoryView, launch: &LaunchTask, mark: &Arc<Mark>) {
        if !self.checks.accesses() {
            return;
        }
        for (segment, touched) in view.touched() {
            let (reads, atomics, writes) =
                (touched.read_runs(), touched.atomic_runs(), touched.written_runs());
            if view.checks_undefined_at_end() {
                for bytes in reads.iter().chain(&touched.unwritten_atomic_runs()) {
                    // What was not declared is reported as that.
                    for bytes in view.declared_parts(segment, bytes.clone()) {
                        self.check_defined(&Stretch::of_segment(segment, bytes), mark);
                    }
                }
            }
            let kinds = [(&reads, Touch::Read), (&atomics, Touch::Atomic), (&writes, Touch::Write)];
            for (ranges, touch) in kinds {
                for bytes in ranges {
                    self.check_touch(&Stretch::of_segment(segment, bytes.clone()), touch, mark);
                }
            }
            if let Some(undefined) = touched.undefined.get().filter(|_| self.checks.uninitialised) {
                undefine(segment, undefined, view.footprint());
            }
            if self.checks.lifetimes && launch.footprint.is_none() {
                for bytes in reads.iter().chain(&atomics).chain(&writes) {
                    let range = segment.start + bytes.start..segment.start + bytes.end;
                    self.check_part_range(segment.region.device, range, mark);
                }
            }
            if self.checks.declarations && launch.footprint.is_none() {
                let read = reads.first().or(atomics.first());
                let written = writes.first().or(atomics.first());
                self.check_declared(segment, launch, Touching::Reading, read, mark);
                self.check_declared(segment, launch, Touching::Writing, written, mark);
            }
        }
    }

    /// Reports what a host kernel touched outside of what its launch declared.
    pub(crate) fn check_strays(&mut self, device: u32, view: &MemoryView, mark: &Arc<Mark>) {
        for stray in view.strays() {
            let touching = if stray.access.writes() { Touching::Writing } else { Touching::Reading };
            let mut subject = format!("memory that is {}", stray.near);
            match self.part_at(device, stray.address, mark) {
                None => {}
                Some(PartAt::Live(part)) => subject.push_str(&part.words(stray.address)),
                Some(PartAt::Ended(_)) => {
                    self.find_freed_part(device, stray.address, stray.bytes, mark);
                    continue;
                }
            }
            let finding = Finding {
                kind: FindingKind::Undeclared(touching),
                device,
                subject,
                bytes: None,
                address: Some(DeviceAddress(stray.address)),
                first: None,
                second: Some(mark.actor.clone()),
                code: None,
                repeat: self.repeat(),
            };
            self.find(finding);
        }
    }

    /// Reports an access the device did not allow.
    pub(crate) fn find_fault(&mut self, device: u32, fault: &AccessFault, mark: &Arc<Mark>) {
        let state = self.device(device);
        let at = fault.address;
        let tomb = state.graveyard.find(at).cloned();
        let near = state.map.nearest_before(at).map(|segment| segment.region.clone());
        let is_inside = state.map.index_of(at).is_some();
        if !is_inside && self.find_freed_part(device, at, fault.bytes, mark) {
            return;
        }
        let (kind, region, death) = match (fault.cause, tomb, near) {
            (AccessCause::Misaligned, _, Some(near)) if is_inside => (FindingKind::Misaligned, near, None),
            (AccessCause::ReadOnly, _, Some(near)) if is_inside => (FindingKind::ReadOnly, near, None),
            (_, Some(tomb), _) if !is_inside => (FindingKind::UseAfterFree, tomb.region, Some(tomb.death)),
            (_, _, Some(near)) if at - near.address < near.bytes.saturating_add(NEAR_BYTES) => {
                (FindingKind::OutOfBounds, near, None)
            }
            _ => return self.find_nowhere(device, fault, mark),
        };
        let start = at - region.address;
        let bytes = start..start.saturating_add(fault.bytes);
        self.find_at(kind, &region, bytes, death.as_ref(), mark);
    }

    fn find_nowhere(&mut self, device: u32, fault: &AccessFault, mark: &Arc<Mark>) {
        let finding = Finding {
            kind: FindingKind::OutOfBounds,
            device,
            subject: format!("{} bytes", fault.bytes),
            bytes: None,
            address: Some(DeviceAddress(fault.address)),
            first: None,
            second: Some(mark.actor.clone()),
            code: None,
            repeat: self.repeat(),
        };
        self.find(finding);
    }

    /// Writes a finding about an object down.
    pub(crate) fn find_object(
        &mut self,
        kind: FindingKind,
        device: u32,
        subject: String,
        first: Option<&Actor>,
        second: Option<&Actor>,
    ) {
        let repeat = self.repeat();
        let (first, second) = (first.cloned(), second.cloned());
        self.find(Finding {
            kind,
            device,
            subject,
            bytes: None,
            address: None,
            first,
            second,
            code: None,
            repeat,
        });
    }

    /// A handle that is gone was used: memory freed twice is always worth a word, the rest if asked for.
    pub(crate) fn find_stale(&mut self, device: u32, call: &Call<'_>, error: &Error) {
        let Some(Refusal::Stale { handle }) = error.refusal() else { return };
        let kind = match call {
            Call::Free { memory, .. } if *handle == memory.to_string() && self.checks.lifetimes => {
                FindingKind::DoubleFree
            }
            _ if self.checks.stale_handles => FindingKind::StaleHandle,
            _ => return,
        };
        self.find_object(kind, device, handle.clone(), None, None);
    }

    fn check_declared(
        &mut self,
        segment: &Segment,
        launch: &LaunchTask,
        touching: Touching,
        touched: Option<&Range<u64>>,
        mark: &Arc<Mark>,
    ) {
        let Some(bytes) = touched else { return };
        let is_variable = launch.function.globals.iter().any(|address| address.0 == segment.region.address);
        let declares = launch.function.loaded.kernel.signature().declares_accesses;
        if !declares || is_variable || self.is_declared(segment, launch, touching) {
            return;
        }
        self.find_at(FindingKind::Undeclared(touching), &segment.region, bytes.clone(), None, mark);
    }

    fn find_race(&mut self, stretch: &Stretch, conflict: Conflict, touch: Touch, mark: &Arc<Mark>) {
        let Conflict { range, earlier, earlier_touch } = conflict;
        let in_order = earlier.order <= mark.order;
        let (first, second) = if in_order { (&earlier, mark) } else { (mark, &earlier) };
        let touches = if in_order { (earlier_touch, touch) } else { (touch, earlier_touch) };
        let kind = match touches {
            (Touch::Read, _) => FindingKind::WriteAfterRead,
            (_, Touch::Read) => FindingKind::ReadAfterWrite,
            _ => FindingKind::WriteAfterWrite,
        };
        let bytes = range.start - stretch.offset..range.end - stretch.offset;
        self.find_in(kind, &stretch.with_bytes(bytes), Some(first), Some(second));
    }

    pub(crate) fn find_in(
        &mut self,
        kind: FindingKind,
        stretch: &Stretch,
        first: Option<&Arc<Mark>>,
        second: Option<&Arc<Mark>>,
    ) {
        let region = &stretch.region;
        let finding = Finding {
            kind,
            device: region.device,
            subject: region.name.to_string(),
            bytes: Some(stretch.bytes.clone()),
            address: (region.address != 0).then(|| DeviceAddress(region.address + stretch.bytes.start)),
            first: first.map(|mark| mark.actor.clone()),
            second: second.map(|mark| mark.actor.clone()),
            code: None,
            repeat: self.repeat(),
        };
        self.find(finding);
    }

    /// Reports a use of a block that a resource handed out.
    pub(crate) fn find_part(
        &mut self,
        kind: FindingKind,
        part: &Part,
        subject: String,
        bytes: Range<u64>,
        first: Option<&Arc<Mark>>,
        second: &Arc<Mark>,
    ) {
        let finding = Finding {
            kind,
            device: second.actor.device,
            subject,
            address: Some(DeviceAddress(part.start.saturating_add(bytes.start))),
            bytes: Some(bytes),
            first: first.map(|mark| mark.actor.clone()),
            second: Some(second.actor.clone()),
            code: None,
            repeat: self.repeat(),
        };
        self.find(finding);
    }

    fn find_at(
        &mut self,
        kind: FindingKind,
        region: &Arc<Region>,
        bytes: Range<u64>,
        first: Option<&Arc<Mark>>,
        second: &Arc<Mark>,
    ) {
        let finding = Finding {
            kind,
            device: region.device,
            subject: region.name.to_string(),
            address: Some(DeviceAddress(region.address + bytes.start)),
            bytes: Some(bytes),
            first: first.map(|mark| mark.actor.clone()),
            second: Some(second.actor.clone()),
            code: None,
            repeat: self.repeat(),
        };
        self.find(finding);
    }

    pub(crate) fn find(&mut self, finding: Finding) {
        let now_ns = self.now_ns;
        self.journal.find(now_ns, finding);
    }

    pub(crate) fn repeat(&self) -> Mode {
        if self.chooser.is_scripted() {
            Mode::Scheduled(Schedule(self.chooser.taken().iter().map(|choice| choice.taken).collect()))
        } else {
            self.journal.mode().clone()
        }
    }

    /// Whether a pointer among the arguments allows the access to the block it points into.
    fn is_declared(&mut self, segment: &Segment, launch: &LaunchTask, touching: Touching) -> bool {
        let map = self.device(segment.region.device).map.clone();
        let loaded = &launch.function.loaded;
        loaded.kernel.signature().parameters.iter().zip(loaded.spans.iter()).any(|(parameter, span)| {
            let SimParameter::Pointer(access) = parameter else { return false };
            let allowed = match touching {
                Touching::Reading => access.reads(),
                Touching::Writing => access.writes(),
            };
            let start = span.offset as usize;
            let bytes = launch.arguments.get(start..start + 8).and_then(|bytes| bytes.try_into().ok());
            let address = bytes.map_or(0, u64::from_le_bytes);
            let target = map.index_of(address).map(|at| map.segments()[at].region.name);
            allowed && target.is_some_and(|name| name.is_same_block(&segment.region.name))
        })
    }
}
