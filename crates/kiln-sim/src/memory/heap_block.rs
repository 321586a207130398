//! Blocks that resources hand out of larger memory: they begin, they end, and work that uses one after its end is reported.
//!
//! A block begins and ends at the call, for work that is submitted from there on: what was submitted before may still use the bytes for what
//! they were, whenever it runs. So the order of submissions says which block a command means, and no seed changes it. These calls stand for nothing that a device without checks would do, so they take no
//! time, count for no planned fault and are no choice of the scheduler.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kiln_driver::{
    DeviceAddress, DeviceMemory, Error, MemoryPart, PartKind, Refusal, Result, StreamId, Submission,
};
use kiln_ptx::exec::ExecFindingKind as InCode;

use crate::check::access_origin::{Action, Actor, Mark};
use crate::check::finding::FindingKind;
use crate::check::vector_clock::Lane;
use crate::device::objects::{MemoryBlock, Objects, Origin};
use crate::memory::heap_block_table::{EndedPart, Part, PartAt};
use crate::schedule::machine_core::{Core, Guard};
use crate::schedule::machine_state::State;
use crate::schedule::step_work::in_kernel;
use crate::schedule::submit::address;
use crate::schedule::task::{End, Task};

impl Core {
    pub(crate) fn begin_part(&self, objects: &Objects, request: MemoryPart) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        let mut state = self.enter_quietly(objects.info.ordinal, CALL)?;
        if !objects.info.features.access_checks && !state.checks.lifetimes {
            let next = "this device does not check accesses";
            return Err(Error::unsupported(CALL, "part of other memory", next));
        }
        let MemoryPart { place, bytes, stream, kind, label } = request;
        crate::memory::allocation::need_bytes(CALL, bytes)?;
        let (start, _) = address(&mut state, objects, CALL, &place, bytes)?;
        let lane = stream.map(|stream| objects.streams.find(CALL, stream)).transpose()?.map(|lane| *lane);
        let block = |id| MemoryBlock { id, address: start, bytes, origin: Origin::Part };
        let (id, _) = objects.memory.insert(block)?;
        let device = objects.info.ordinal;
        if kind == PartKind::Inspection {
            return Ok(DeviceMemory { id, address: DeviceAddress(start), bytes });
        }
        let born = state.note_mark(device, lane, Action::Allocate(id));
        let range = start..start + bytes;
        state.device(device).parts.begin(id, range.clone(), label, born);
        if kind == PartKind::NewBlock && state.checks.uninitialised {
            state.forget_contents(device, range);
        }
        Ok(DeviceMemory { id, address: DeviceAddress(start), bytes })
    }

    pub(crate) fn end_part(
        &self,
        objects: &Objects,
        block: &MemoryBlock,
        stream: Option<StreamId>,
    ) -> Result<()> {
        const CALL: &str = "free";
        let device = objects.info.ordinal;
        let mut state = self.enter_quietly(device, CALL)?;
        objects.memory.remove(CALL, block.id)?;
        // The stream is only named in messages, and may be gone before its blocks.
        let lane = stream.and_then(|stream| objects.streams.find(CALL, stream).ok()).map(|lane| *lane);
        let (death, now_ns) = (state.note_mark(device, lane, Action::Free(block.id)), state.now_ns);
        state.device(device).parts.end(block.id, block.address, death, now_ns);
        Ok(())
    }

    /// The state, for a call that takes no time and counts for no planned fault.
    fn enter_quietly(&self, device: u32, call: &'static str) -> Result<Guard<'_>> {
        if in_kernel() {
            let (handle, why) =
                (format!("device {device}"), "a kernel cannot call the device it runs on".into());
            return Err(Error::refused(call, Refusal::Busy { handle, why }));
        }
        self.answer_lost(self.lock(), device, call)
    }
}

impl State {
    /// What the host does here and now for a stream; it is no step, and has the place of the one before.
    fn note_mark(&mut self, device: u32, lane: Option<Lane>, action: Action) -> Arc<Mark> {
        let stream = lane.and_then(|lane| self.streams.get(&lane));
        let submission = stream.map(|stream| Submission(stream.submitted)).filter(|last| last.0 > 0);
        let actor = Actor {
            device,
            stream: stream.map(|stream| stream.id),
            submission,
            node: None,
            action,
            called_at: None,
        };
        let (order, clock) = (self.order(), self.host.clone());
        Arc::new(Mark { lane: Lane::HOST, tick: clock.of(Lane::HOST), end: None, clock, order, actor })
    }

    /// Nothing is known of bytes from here on, for what is submitted from here on.
    fn forget_contents(&mut self, device: u32, range: Range<u64>) {
        let order = self.order();
        for segment in self.device(device).map.overlapping(range.clone()) {
            let (start, end) = (segment.start.max(range.start), segment.end.min(range.end));
            let place = segment.place_of(start)..segment.place_of(start) + (end - start);
            segment.physical.shadow().begin_block(place, order);
        }
    }

    /// Reports memory that a task names and that was freed before it was submitted.
    pub(crate) fn check_parts(&mut self, device: u32, task: &Task, mark: &Arc<Mark>) {
        if !self.checks.lifetimes {
            return;
        }
        match task {
            Task::Copy { from, to, bytes } => {
                for end in [from, to] {
                    if let End::Device { device, address, is_part: false } = end {
                        self.check_part_range(*device, *address..address.saturating_add(*bytes), mark);
                    }
                }
            }
            Task::Fill { address, is_part: false, pattern, count } => {
                let bytes = pattern.bytes().saturating_mul(*count);
                self.check_part_range(device, *address..address.saturating_add(bytes), mark);
            }
            Task::Fill { .. } => {}
            Task::Launch(launch) => {
                let Some(footprint) = &launch.footprint else { return };
                if self.device(device).parts.is_empty() {
                    return;
                }
                for span in footprint.spans() {
                    let end = span.address.0.saturating_add(span.bytes);
                    self.check_part_range(device, span.address.0..end, mark);
                }
            }
        }
    }

    /// Reports a range that overlaps memory which was freed before a submission.
    pub(crate) fn check_part_range(&mut self, device: u32, range: Range<u64>, mark: &Arc<Mark>) {
        if range.is_empty() {
            return;
        }
        if let Some(ended) = self.device(device).parts.ended_in(range.clone(), mark.order) {
            let Part { start, end, .. } = *ended.part;
            let used = range.start.max(start) - start..range.end.min(end) - start;
            self.find_freed(&ended, used, mark);
        }
    }

    /// Whether an access where no memory is mapped any more meant a block that was freed; if so it is reported.
    pub(crate) fn find_freed_part(
        &mut self,
        device: u32,
        address: u64,
        bytes: u64,
        mark: &Arc<Mark>,
    ) -> bool {
        let Some(PartAt::Ended(ended)) = self.device(device).parts.at(address, mark.order) else {
            return false;
        };
        let offset = address - ended.part.start;
        self.find_freed(&ended, offset..offset.saturating_add(bytes), mark);
        true
    }

    fn find_freed(&mut self, ended: &EndedPart, used: Range<u64>, mark: &Arc<Mark>) {
        let part = &ended.part;
        let time = Duration::from_nanos(ended.time_ns);
        let subject = format!("{}, {}, freed at {time:?}", part.id, words(part));
        self.find_part(FindingKind::UseAfterFree, part, subject, used, Some(&ended.death), mark);
    }

    /// What an undeclared access of a kernel met: the words of the finding say whose block it is, and if it was freed before, that is
    /// the finding.
    pub(crate) fn name_part(&mut self, device: u32, kind: &mut InCode, mark: &Arc<Mark>) {
        let InCode::Undeclared(bad) = kind else { return };
        match self.device(device).parts.at(bad.address, mark.order) {
            None => {}
            Some(PartAt::Live(part)) => bad.near.push_str(&part.words(bad.address)),
            Some(PartAt::Ended(_)) if !self.checks.lifetimes => {}
            Some(PartAt::Ended(ended)) => {
                let mut bad = bad.clone();
                bad.near = ended.words(bad.address);
                *kind = InCode::UseAfterFree(bad);
            }
        }
    }

    /// What lies at an address that a host kernel touched without having declared it.
    pub(crate) fn part_at(&mut self, device: u32, address: u64, mark: &Mark) -> Option<PartAt> {
        self.device(device).parts.at(address, mark.order)
    }
}

impl EndedPart {
    /// Where an address lies in it, who freed it and when, in words that complete "which is ...".
    pub(crate) fn words(&self, address: u64) -> String {
        let (part, offset) = (&self.part, address.saturating_sub(self.part.start));
        let time = Duration::from_nanos(self.time_ns);
        format!("byte {offset} of {}, {}, freed at {time:?} by {}", part.id, words(part), self.death.actor)
    }
}

impl Part {
    /// Where an address lies in it, in words that continue a sentence.
    pub(crate) fn words(&self, address: u64) -> String {
        format!("; it is byte {} of {}, {}", address.saturating_sub(self.start), self.id, words(self))
    }
}

/// A block in words.
fn words(part: &Part) -> String {
    let bytes = part.end - part.start;
    let place = match (part.born.actor.stream, part.born.actor.submission) {
        (Some(stream), Some(last)) => format!(" allocated on {stream} after {last}"),
        (Some(stream), None) => format!(" allocated on {stream}"),
        (None, _) => String::new(),
    };
    format!("a block of {bytes} bytes ({}){place}", part.label)
}
