//! Takes the events of a recording and says what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use super::collective_calls::CollectiveCalls;
use super::device_idle::{DeviceIdle, IdleCase, Surroundings, Why};
use super::explanation::{
    ExplainedDevice, ExplainedHostWait, ExplainedTakeover, Explanation, IdleReason, IdleWhy, StreamStall,
    WorkName,
};
use super::held_memory::HeldMemory;
use super::host_waiting::{HostWait, HostWaiting};
use super::missing_events::MissingEvents;
use super::name_table::NameTable;
use super::ranking::{Cost, Ranking};
use super::stream_stalls::{StallCase, StallKey, Wait, Waits};
use super::timeline::{Timeline, Work};
use crate::record::{
    FaultRecord, RecordingClock, SubmissionRecord, TakeoverPhase, TakeoverRecord, TraceEvent, TraceStamp,
};
use crate::repeat_command::RepeatCommand;

/// How many reasons are named.
const NAMED: usize = 3;
/// Submissions and waits that are kept: some 1.5 GB. Of a longer recording the rest is counted and told.
const MAX_KEPT: usize = 1 << 24;
/// The command that records a program.
const REPEATED_BY: [&str; 2] = ["kiln", "trace"];
/// How many faults are named.
const MAX_FAULTS: usize = 10;

/// Takes the events of a recording.
///
/// ```
/// use kiln_trace::{Explainer, TraceEvent, DroppedRecord};
///
/// let mut explainer = Explainer::default();
/// explainer.add(&TraceEvent::Dropped(DroppedRecord { events: 7, ..DroppedRecord::default() }));
/// assert_eq!(explainer.finish().missing_events, 7);
/// ```
#[derive(Default)]
pub struct Explainer {
    names: NameTable,
    timeline: Timeline,
    waits: Waits,
    host: HostWaiting,
    takeovers: Vec<TakeoverRecord>,
    collectives: CollectiveCalls,
    memory: BTreeMap<u32, HeldMemory>,
    devices: BTreeMap<u32, String>,
    missing: MissingEvents,
    command: RepeatCommand,
    room: Room,
    explanation: Explanation,
}

/// For how many submissions and waits there is room.
struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_KEPT)
    }
}

impl Explainer {
    /// One that keeps so many submissions and waits, those that come first; the default is 2^24.
    pub fn keeping(limit: usize) -> Self {
        Self { room: Room(limit), ..Self::default() }
    }

    /// Takes an event.
    pub fn add(&mut self, event: &TraceEvent<'_>) {
        if matches!(event, TraceEvent::Submission(_) | TraceEvent::StreamWait(_) | TraceEvent::HostWait(_)) {
            let Some(left) = self.room.0.checked_sub(1) else {
                self.explanation.left_out_events += 1;
                return;
            };
            self.room.0 = left;
        }
        match event {
            TraceEvent::Start(start) => {
                self.explanation.program = start.program.to_owned();
                self.explanation.is_virtual = start.clock == RecordingClock::Virtual;
            }
            TraceEvent::Device(device) => {
                self.devices.insert(device.device, device.name.to_owned());
                // Another runtime of the program, after the last had ended.
                self.explanation.is_whole = false;
            }
            TraceEvent::Submission(work) => self.submission(work),
            TraceEvent::StreamWait(wait) => {
                let block = wait.block.map(|block| (block.block, self.names.name(block.tag)));
                let wait_for = Wait { writer: wait.writer, covers: wait.covers, reason: wait.reason, block };
                self.waits.add(wait.waiter, wait_for);
            }
            TraceEvent::HostWait(wait) => {
                let line = self.names.line(wait.line);
                let host_wait = HostWait { cause: wait.cause, line, awaited: wait.awaited, span: wait.span };
                self.host.add(wait.thread, host_wait);
            }
            TraceEvent::Allocation(block) => {
                let (tag, line) = (self.names.name(block.tag), self.names.line(block.line));
                let memory = self.memory.entry(block.device).or_default();
                memory.allocated(block.block, block.bytes, tag, line, block.time_ns);
            }
            TraceEvent::Free(block) => {
                self.memory.entry(block.device).or_default().freed(block.block, block.time_ns);
            }
            TraceEvent::Fault(fault) => self.fault(fault),
            TraceEvent::Takeover(takeover) => self.takeovers.push(*takeover),
            TraceEvent::Dropped(dropped) => {
                self.missing.add(dropped);
                self.explanation.missing_events = self.missing.events();
                self.explanation.missing_why = Some(self.missing.to_string());
            }
            TraceEvent::Heap(heap) => {
                let line = self.names.line(heap.line);
                self.memory.entry(heap.device).or_default().heap(heap, line);
            }
            TraceEvent::Collective(call) => self.collectives.add(call, &mut self.names),
            TraceEvent::End(_) => self.explanation.is_whole = true,
            TraceEvent::Command(word) => self.command.add(word),
            TraceEvent::Stream(_) => {}
        }
    }

    /// Says what follows.
    pub fn finish(mut self) -> Explanation {
        self.timeline.sort();
        self.host.sort();
        let mut memory = std::mem::take(&mut self.memory);
        let mut stalls = self.waits.stalls(&self.timeline);
        let mut devices: BTreeSet<u32> = self.timeline.devices().into_iter().collect();
        devices.extend(memory.keys());
        devices.extend(self.takeovers.iter().map(|takeover| takeover.device));
        let explained = devices.into_iter().map(|device| {
            let memory = memory.remove(&device).unwrap_or_default().finish(&self.names);
            ExplainedDevice {
                peak_bytes: memory.peak_bytes,
                peak_ns: memory.peak_ns,
                memory: memory.tags,
                heap_peak_bytes: memory.heap_peak_bytes,
                refusals: memory.refusals,
                refused: memory.refused,
                takeovers: self.steps(device),
                stalls: stalls.remove(&device).map(|found| self.stalls(found)).unwrap_or_default(),
                ..self.device(device)
            }
        });
        let devices = explained.collect();
        let host_waits = self.host_waits();
        let collectives = self.collectives.largest(NAMED, &self.names, &self.timeline);
        let repeat = self.command.is_known().then(|| self.command.under(&REPEATED_BY));
        let is_repeat_whole = self.command.is_whole();
        Explanation { devices, host_waits, collectives, repeat, is_repeat_whole, ..self.explanation }
    }

    /// How long the steps of bringing a device back took.
    fn steps(&self, device: u32) -> Vec<ExplainedTakeover> {
        let phases = [TakeoverPhase::Lost, TakeoverPhase::Rebuilding, TakeoverPhase::Resubmitting];
        let steps = phases.into_iter().map(|phase| {
            let own = || self.takeovers.iter().filter(|step| step.device == device && step.phase == phase);
            let ns = own().fold(0, |sum: u64, step| sum.saturating_add(step.span.ns()));
            ExplainedTakeover { phase, ns, times: own().count() as u64 }
        });
        steps.filter(|step| step.times > 0).collect()
    }

    fn submission(&mut self, work: &SubmissionRecord<'_>) {
        let (name, line) = (self.names.name(work.name), self.names.line(work.line));
        self.timeline.add(Work { stamp: work.stamp, name, line, host: work.host, device: work.device });
    }

    fn fault(&mut self, fault: &FaultRecord<'_>) {
        if self.explanation.faults.len() < MAX_FAULTS {
            let line = fault.line.map(|line| format!(" ({line})")).unwrap_or_default();
            self.explanation.faults.push(format!("{}{line}", fault.message));
        }
    }

    /// What is said about a device, but for its memory and stalls.
    fn device(&self, device: u32) -> ExplainedDevice {
        let surroundings = Surroundings {
            timeline: &self.timeline,
            waits: &self.waits,
            host: &self.host,
            takeovers: &self.takeovers,
        };
        let work = || self.timeline.of_device(device).flatten();
        let mut explained = ExplainedDevice {
            device,
            name: self.devices.get(&device).cloned().unwrap_or_default(),
            submissions: work().count() as u64,
            untimed_submissions: work().filter(|work| work.device.is_none()).count() as u64,
            ..ExplainedDevice::default()
        };
        match DeviceIdle::of(device, &surroundings) {
            Some(idle) => {
                (explained.span_ns, explained.busy_ns) = (idle.span_ns, Some(idle.busy_ns));
                explained.idle =
                    idle.reasons.largest(NAMED).into_iter().map(|found| self.idle(found)).collect();
            }
            None => {
                let begin = work().map(|work| work.host.begin_ns).min().unwrap_or_default();
                let end = work().map(|work| work.host.end_ns).max().unwrap_or_default();
                explained.span_ns = end.saturating_sub(begin);
            }
        }
        explained
    }

    fn idle(&self, (why, cost): (Why, Cost<IdleCase>)) -> IdleReason {
        let case = cost.longest;
        let why = match why {
            Why::HostWait { line, .. } => {
                IdleWhy::HostWait { cause: case.cause, line: self.names.line_text(line) }
            }
            Why::HostBusy { .. } => IdleWhy::HostBusy,
            Why::OtherDevice { .. } => {
                let writer = case.writer.map(|writer| self.stamp_name(writer)).unwrap_or_default();
                IdleWhy::OtherDevice { writer }
            }
            Why::Takeover(_) => IdleWhy::Takeover { phase: case.phase },
            Why::Start => IdleWhy::Start,
        };
        let Cost { ns, times, longest_ns, .. } = cost;
        IdleReason { why, before: self.work_name(&case.before), ns, times, longest_ns }
    }

    fn stalls(&self, found: Ranking<StallKey, StallCase>) -> Vec<StreamStall> {
        let stall = |(_, cost): (StallKey, Cost<StallCase>)| {
            let case = cost.longest;
            let writer = case.writer.map(|writer| self.work_name(&writer));
            StreamStall {
                waiter: self.work_name(&case.waiter),
                writer: writer.unwrap_or_else(|| named("", case.wait.writer)),
                reason: case.wait.reason,
                block: case.wait.block.map(|(block, _)| block),
                tag: case.wait.block.map(|(_, tag)| self.names.text(tag)).unwrap_or_default(),
                unrelated: case.unrelated.map(|work| self.work_name(&work)),
                ns: cost.ns,
                times: cost.times,
                longest_ns: cost.longest_ns,
                unrelated_ns: case.unrelated_ns,
            }
        };
        found.largest(NAMED).into_iter().map(stall).collect()
    }

    fn host_waits(&self) -> Vec<ExplainedHostWait> {
        let wait = |((_, line), cost): (_, Cost<HostWait>)| ExplainedHostWait {
            cause: cost.longest.cause,
            line: self.names.line_text(line),
            awaited: cost.longest.awaited.map(|stamp| self.stamp_name(stamp)),
            ns: cost.ns,
            times: cost.times,
            longest_ns: cost.longest_ns,
        };
        self.host.by_line().largest(NAMED).into_iter().map(wait).collect()
    }

    fn work_name(&self, work: &Work) -> WorkName {
        let line = self.names.line_text(work.line);
        WorkName { line, ..named(&self.names.text(work.name), work.stamp) }
    }

    /// The name of a submission, as far as it is in the recording.
    fn stamp_name(&self, stamp: TraceStamp) -> WorkName {
        match self.timeline.up_to(stamp).filter(|work| work.stamp == stamp) {
            Some(work) => self.work_name(work),
            None => named("", stamp),
        }
    }
}

fn named(name: &str, stamp: TraceStamp) -> WorkName {
    let TraceStamp { stream, number } = stamp;
    WorkName { name: name.to_owned(), line: None, device: stream.device, stream: stream.stream, number }
}
