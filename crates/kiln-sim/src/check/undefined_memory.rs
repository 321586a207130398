//! Undefined bytes of device memory: what kernels leave behind, and who reads it.

use std::ops::Range;
use std::sync::Arc;

use kiln_driver::DeviceAddress;

use crate::check::access_origin::Mark;
use crate::check::checker::Stretch;
use crate::check::declared_memory::LaunchFootprint;
use crate::check::finding::{Finding, FindingKind};
use crate::check::undefined_bytes::{UndefinedBytes, UndefinedRun};
use crate::check::undefined_value::{UndefinedPart, UndefinedRange, UndefinedValue};
use crate::memory::address_map::Segment;
use crate::memory::heap_block_table::PartAt;
use crate::schedule::machine_state::State;

impl State {
    /// Reports bytes that are read and were never written.
    pub(crate) fn check_defined(&mut self, stretch: &Stretch, mark: &Arc<Mark>) {
        if !self.checks.uninitialised {
            return;
        }
        let undefined = stretch.physical.shadow().undefined(stretch.place(), mark.order);
        if let Some(part) = undefined.iter().find(|part| part.is_told()) {
            let bytes = part.bytes.start - stretch.offset..part.bytes.end - stretch.offset;
            match &part.value {
                Some(value) => self.find_undefined(&stretch.with_bytes(bytes), value, mark),
                None => {
                    self.find_in(FindingKind::Uninitialised, &stretch.with_bytes(bytes), None, Some(mark));
                }
            }
        }
    }

    /// Bytes of a range to which a kernel stored an undefined value that is still there.
    pub(crate) fn undefined_values(&mut self, device: u32, range: Range<u64>) -> Vec<UndefinedRange> {
        let mut found = Vec::new();
        self.each_undefined_part(device, range, |address, part| {
            let (bytes, bits) = (part.bytes.end - part.bytes.start, part.bits);
            found.extend(part.value.map(|value| UndefinedRange {
                address,
                bytes,
                bits,
                store: value.store.clone(),
            }));
        });
        found
    }

    /// Addresses of a range that were never written.
    pub(crate) fn unwritten_addresses(&mut self, device: u32, range: Range<u64>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        self.each_undefined_part(device, range, |address, part| {
            if part.value.is_none() {
                found.push(address..address + (part.bytes.end - part.bytes.start));
            }
        });
        found
    }

    /// The undefined parts of what is mapped in a range, each with its address, as all that was submitted so far leaves them.
    fn each_undefined_part(
        &mut self,
        device: u32,
        range: Range<u64>,
        mut each: impl FnMut(u64, UndefinedPart),
    ) {
        let map = self.device(device).map.clone();
        for segment in map.overlapping(range.clone()) {
            let (start, end) = (segment.start.max(range.start), segment.end.min(range.end));
            let place = segment.place_of(start)..segment.place_of(end);
            for part in segment.physical.shadow().undefined(place, u64::MAX) {
                each(segment.start + (part.bytes.start - segment.offset), part);
            }
        }
    }

    /// Reports the read of bytes to which a kernel stored an undefined value.
    fn find_undefined(&mut self, stretch: &Stretch, value: &UndefinedValue, mark: &Arc<Mark>) {
        let (region, bytes) = (&stretch.region, &stretch.bytes);
        let (stored, address) = (&value.store.finding, region.address + bytes.start);
        let element = value.element(address).map_or_else(String::new, |element| format!(" ({element})"));
        let block = match self.part_at(region.device, address, mark) {
            Some(PartAt::Live(part)) => part.words(address),
            _ => String::new(),
        };
        let earlier = self.stored_before(region.device, &stored.kind).map_or_else(String::new, |earlier| {
            format!("; an earlier launch stored an undefined value there. {}", earlier.store.finding)
        });
        let finding = Finding {
            kind: FindingKind::Uninitialised,
            device: region.device,
            subject: format!(
                "it reads bytes {}..{} of {}, to which a kernel stored an undefined value{element}{block}. {stored}{earlier}",
                bytes.start, bytes.end, region.name
            ),
            bytes: Some(bytes.clone()),
            address: (region.address != 0).then(|| DeviceAddress(region.address + bytes.start)),
            first: None,
            second: Some(mark.actor.clone()),
            code: Some(Box::new(stored.clone())),
            repeat: self.repeat(),
        };
        self.find(finding);
    }
}

/// Takes over what a launch left undefined in a segment.
pub(crate) fn undefine(segment: &Segment, undefined: &UndefinedBytes, footprint: Option<&LaunchFootprint>) {
    let mut shadow = segment.physical.shadow();
    let mut known = Vec::new();
    for run in undefined.runs() {
        undefined_parts(segment, &run, footprint, &mut known, |part| shadow.undefine(&part));
    }
}

/// What a launch left undefined in a run of bytes of a segment, argument by argument. `known` are the values that were named before.
fn undefined_parts(
    segment: &Segment,
    run: &UndefinedRun,
    footprint: Option<&LaunchFootprint>,
    known: &mut Vec<Arc<UndefinedValue>>,
    mut each: impl FnMut(UndefinedPart),
) {
    let (mut at, end) = (segment.start + run.bytes.start, segment.start + run.bytes.end);
    while at < end {
        let argument = footprint.and_then(|footprint| footprint.argument_at(at));
        let (argument, stop) = argument.map_or((None, end), |(place, stop)| (Some(place), stop.min(end)));
        let value = run.store.as_ref().map(|store| {
            let is_known =
                |value: &&Arc<UndefinedValue>| Arc::ptr_eq(&value.store, store) && value.argument == argument;
            known.iter().rev().find(is_known).cloned().unwrap_or_else(|| {
                let value = Arc::new(UndefinedValue { store: store.clone(), argument: argument.clone() });
                known.push(value.clone());
                value
            })
        });
        let bytes = segment.place_of(at)..segment.place_of(stop);
        each(UndefinedPart { bytes, bits: run.bits, value });
        at = stop;
    }
}
