//! Copies and fills: which bytes, checked when the step begins.

use std::sync::Arc;

use kiln_driver::{Access, Pattern, Protection};

use crate::check::access_origin::Mark;
use crate::check::byte_shadow::Touch;
use crate::check::checker::Stretch;
use crate::check::undefined_value::UndefinedPart;
use crate::memory::address_map::Segment;
use crate::memory::memory_identity::RegionName;
use crate::memory::memory_view::{AccessCause, AccessFault};
use crate::schedule::machine_state::State;
use crate::schedule::step_work::{Job, Move, Slice};
use crate::schedule::task::End;

impl State {
    pub(crate) fn begin_copy(
        &mut self,
        from: &End,
        to: &End,
        bytes: u64,
        mark: &Arc<Mark>,
    ) -> Result<Job, AccessFault> {
        let sources = self.stretches(from, bytes, Access::Read, mark)?;
        let targets = self.stretches(to, bytes, Access::Write, mark)?;
        if self.is_lost(from) || self.is_lost(to) {
            // The device of the other end went away before the copy began.
            let whole = UndefinedPart { bytes: 0..bytes, bits: u8::MAX, value: None };
            targets.iter().for_each(|stretch| self.check_touch(stretch, Touch::Write, mark));
            undefine_parts(&targets, &[whole]);
            return Ok(Job::Pass);
        }
        let undefined = match to {
            End::Host { .. } => {
                sources.iter().for_each(|stretch| self.check_defined(stretch, mark));
                Vec::new()
            }
            End::Device { .. } => undefined_parts(&sources, mark.order),
        };
        sources.iter().for_each(|stretch| self.check_touch(stretch, Touch::Read, mark));
        targets.iter().for_each(|stretch| self.check_touch(stretch, Touch::Write, mark));
        if self.checks.uninitialised {
            undefine_parts(&targets, &undefined);
        }
        Ok(Job::Copy(moves(&slices(&sources), &slices(&targets))))
    }

    pub(crate) fn begin_fill(
        &mut self,
        device: u32,
        address: u64,
        pattern: Pattern,
        count: u64,
        mark: &Arc<Mark>,
    ) -> Result<Job, AccessFault> {
        let bytes = pattern.bytes().saturating_mul(count);
        let targets =
            self.stretches(&End::Device { device, address, is_part: false }, bytes, Access::Write, mark)?;
        targets.iter().for_each(|stretch| self.check_touch(stretch, Touch::Write, mark));
        Ok(Job::Fill { to: slices(&targets), pattern })
    }

    fn is_lost(&self, end: &End) -> bool {
        match end {
            End::Device { device, .. } => {
                self.devices.get(*device as usize).is_some_and(|device| device.lost.is_some())
            }
            End::Host { .. } => false,
        }
    }

    /// The memory behind one end of a copy, as it is mapped now.
    fn stretches(
        &mut self,
        end: &End,
        bytes: u64,
        access: Access,
        mark: &Arc<Mark>,
    ) -> Result<Vec<Stretch>, AccessFault> {
        match end {
            _ if bytes == 0 => Ok(Vec::new()),
            End::Host { memory, offset } => {
                let range = *offset..offset + bytes;
                if !memory.is_present() {
                    self.unmap_missing_hosts();
                    let address = memory.physical.bytes.as_ptr().addr() as u64 + offset;
                    return Err(AccessFault { address, bytes, access, cause: AccessCause::Unmapped });
                }
                self.check_host_alive(memory, range.clone(), mark);
                Ok(vec![Stretch::of_host(memory, range)])
            }
            End::Device { device, address, .. } => {
                self.unmap_missing_hosts();
                let map = &self.device(*device).map;
                let range = *address..address + bytes;
                if let Some(hole) = map.first_hole(range.clone()) {
                    let cause = AccessCause::Unmapped;
                    return Err(AccessFault { address: hole, bytes: range.end - hole, access, cause });
                }
                let segments = map.overlapping(range.clone());
                // Only mappings are protected against copies; a constant is against kernels alone.
                let is_locked = |segment: &&Segment| {
                    let is_mapping = matches!(segment.region.name, RegionName::Mapping(..));
                    segment.protection == Protection::Read && is_mapping
                };
                let locked = segments.iter().find(is_locked);
                if let (true, Some(segment)) = (access.writes(), locked) {
                    let (address, cause) = (segment.start.max(range.start), AccessCause::ReadOnly);
                    return Err(AccessFault { address, bytes: range.end - address, access, cause });
                }
                let part = |segment: &Segment| {
                    let (start, end) = (segment.start.max(range.start), segment.end.min(range.end));
                    Stretch::of_segment(segment, start - segment.start..end - segment.start)
                };
                Ok(segments.iter().map(part).collect())
            }
        }
    }
}

fn slices(stretches: &[Stretch]) -> Vec<Slice> {
    let slice = |stretch: &Stretch| {
        let place = stretch.place();
        Slice { bytes: stretch.physical.bytes.clone(), offset: place.start, len: place.end - place.start }
    };
    stretches.iter().map(slice).collect()
}

/// Pairs two lists of slices of the same total length.
fn moves(from: &[Slice], to: &[Slice]) -> Vec<Move> {
    let mut list = Vec::new();
    let (mut from, mut to) = (from.to_vec(), to.to_vec());
    from.reverse();
    to.reverse();
    while let (Some(mut source), Some(mut target)) = (from.pop(), to.pop()) {
        let len = source.len.min(target.len);
        let cut = |slice: &mut Slice, rest: &mut Vec<Slice>| {
            if slice.len > len {
                rest.push(Slice {
                    offset: slice.offset + len,
                    len: slice.len - len,
                    bytes: slice.bytes.clone(),
                });
                slice.len = len;
            }
        };
        cut(&mut source, &mut from);
        cut(&mut target, &mut to);
        list.push(Move { from: source, to: target });
    }
    list
}

/// The parts of a list of stretches that were never written, as a submission with that place in the order sees them, counted from the first byte of the list.
fn undefined_parts(stretches: &[Stretch], order: u64) -> Vec<UndefinedPart> {
    let mut parts = Vec::new();
    let mut at = 0;
    for stretch in stretches {
        let place = stretch.place();
        let shadow = stretch.physical.shadow();
        parts.extend(shadow.undefined(place.clone(), order).into_iter().map(|part| UndefinedPart {
            bytes: at + part.bytes.start - place.start..at + part.bytes.end - place.start,
            bits: part.bits,
            value: part.value.map(|value| Arc::new(value.elsewhere())),
        }));
        at += place.end - place.start;
    }
    parts
}

fn undefine_parts(stretches: &[Stretch], parts: &[UndefinedPart]) {
    let mut at = 0;
    for stretch in stretches {
        let place = stretch.place();
        let len = place.end - place.start;
        for part in parts {
            let (start, end) = (part.bytes.start.max(at), part.bytes.end.min(at + len));
            if start < end {
                let bytes = place.start + start - at..place.start + end - at;
                stretch.physical.shadow().undefine(&UndefinedPart { bytes, ..part.clone() });
            }
        }
        at += len;
    }
}
