//! Takes the events of a recording and says what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use super::collective_calls::CollectiveCalls;
use super::device_idle::{IdleCase, Surroundings, Why};
use super::device_work::DeviceWork;
use super::explanation::{
    ExplainedClock, ExplainedDevice, ExplainedHostWait, Explanation, IdleReason, IdleWhy, LeftOut,
    MoreHostWaits, StreamStall, WorkName,
};
use super::finding_list::FindingList;
use super::held_memory::HeldMemory;
use super::host_waiting::{HostCase, HostWait, HostWaiting};
use super::idle_knowledge::{IdleKnowledge, UnknownIdle};
use super::missing_events::MissingEvents;
use super::name_table::NameTable;
use super::post_mortems::PostMortems;
use super::ranking::{Cost, Ranking, cut};
use super::stream_stalls::{StallCase, StallKey, Stalls, Wait, Waits};
use super::takeover_steps::TakeoverSteps;
use super::timeline::{Timeline, Work};
use crate::record::{
    FaultRecord, NOT_BROUGHT_BACK, RecordingClock, StreamWaitRecord, SubmissionRecord, TraceEvent,
    TraceStamp, WaitReason,
};
use crate::repeat_command::RepeatCommand;

/// How many reasons are named.
const NAMED: usize = 3;
/// Submissions and waits that are looked at together. Half of them are settled then, and kept for the other half.
const WINDOW: usize = 1 << 18;
/// The command that records a program.
const REPEATED_BY: [&str; 2] = ["kiln", "trace"];
/// How many faults are named.
const MAX_FAULTS: usize = 10;

/// Takes the events of a recording, in the order of the file.
///
/// It needs less than 80 MB, however long the recording is: what was submitted and waited for is looked at in parts, each with the one
/// before it. That is exact as long as nothing waits for work that was recorded more than 100,000 events before it and was still under way.
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
    takeovers: TakeoverSteps,
    collectives: CollectiveCalls,
    memory: BTreeMap<u32, HeldMemory>,
    devices: BTreeMap<u32, String>,
    idle_knowledge: IdleKnowledge,
    work: BTreeMap<u32, DeviceWork>,
    stalls: Stalls,
    missing: MissingEvents,
    findings: FindingList,
    post_mortems: PostMortems,
    command: RepeatCommand,
    window: Window,
    explanation: Explanation,
}

/// How much is looked at together.
struct Window {
    limit: usize,
    /// What came since the last time.
    fresh: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { limit: WINDOW, fresh: 0 }
    }
}

impl Explainer {
    /// One that looks at so many submissions and waits together; the default is 2^18.
    pub fn looking_at(limit: usize) -> Self {
        let window = Window { limit: limit.max(2), ..Window::default() };
        Self { window, ..Self::default() }
    }

    /// So many damaged places of the recording, with so many bytes, were left out.
    pub fn leave_out(&mut self, damaged_blocks: u64, skipped_bytes: u64) {
        self.explanation.damaged_blocks += damaged_blocks;
        self.explanation.skipped_bytes += skipped_bytes;
        if damaged_blocks > 0 {
            self.idle_knowledge.leave_out();
        }
    }

    /// Takes an event.
    pub fn add(&mut self, event: &TraceEvent<'_>) {
        self.idle_knowledge.add(event);
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
                let StreamWaitRecord { writer, covers, reason, time_ns, .. } = *wait;
                let line = self.names.line(wait.line);
                self.waits.add(wait.waiter, Wait { writer, covers, reason, block, line, time_ns });
                self.came();
            }
            TraceEvent::HostWait(wait) => {
                let line = self.names.line(wait.line);
                let host_wait = HostWait { cause: wait.cause, line, awaited: wait.awaited, span: wait.span };
                let clock = self.idle_knowledge.clocks().of(wait.device);
                self.host.add((clock, wait.thread), host_wait);
                self.came();
            }
            TraceEvent::Allocation(block) => {
                let (tag, line) = (self.names.name(block.tag), self.names.line(block.line));
                let memory = self.memory.entry(block.device).or_default();
                memory.allocated(block.block, block.bytes, tag, line, block.time_ns);
            }
            TraceEvent::Free(block) => {
                let tag = self.names.name(block.tag);
                self.memory.entry(block.device).or_default().freed(
                    block.block,
                    block.bytes,
                    tag,
                    block.time_ns,
                );
            }
            TraceEvent::Fault(fault) => self.fault(fault),
            TraceEvent::Finding(finding) => self.findings.add(finding),
            TraceEvent::PostMortem(line) => self.post_mortems.add(line),
            TraceEvent::Takeover(takeover) => self.takeovers.add(*takeover),
            TraceEvent::Dropped(dropped) => {
                self.missing.add(dropped);
                self.explanation.missing_events = self.missing.events();
                self.explanation.missing_why = Some(self.missing.to_string());
            }
            TraceEvent::Heap(heap) => {
                let line = self.names.line(heap.line);
                let tag = self.names.name(heap.tag);
                self.memory.entry(heap.device).or_default().heap(heap, tag, line);
            }
            TraceEvent::Collective(call) => {
                self.collectives.add(call, &mut self.names);
                self.came();
            }
            TraceEvent::End(_) => self.explanation.is_whole = true,
            TraceEvent::Command(word) => self.command.add(word),
            TraceEvent::Earlier(work) => {
                self.work.entry(work.stamp.stream.device).or_default().earlier(work);
            }
            TraceEvent::Stream(_) | TraceEvent::Worker(_) => {}
        }
    }

    /// Something came that is kept until it is settled.
    fn came(&mut self) {
        self.window.fresh += 1;
        if self.window.fresh < self.window.limit {
            return;
        }
        // Without work there is nothing that the rest is about.
        self.settle(self.timeline.middle_ns().unwrap_or(0));
        self.window.fresh =
            self.timeline.fresh() + self.waits.len() + self.host.len() + self.collectives.len();
    }

    /// Looks at the work that began before a time.
    fn settle(&mut self, before_ns: u64) {
        self.timeline.begin_settling(before_ns);
        self.waits.sort();
        self.host.sort();
        let surroundings = Surroundings {
            timeline: &self.timeline,
            waits: &self.waits,
            host: &self.host,
            takeovers: self.takeovers.last(),
            clocks: self.idle_knowledge.clocks(),
        };
        for device in self.timeline.settling_devices() {
            let work = self.work.entry(device).or_default();
            work.settle(self.timeline.settling(device), &surroundings);
        }
        self.waits.settle(&self.timeline, self.idle_knowledge.clocks(), &mut self.stalls);
        let half = self.window.limit / 2;
        self.host.settle(&self.timeline);
        self.collectives.settle(&self.timeline, half / 2);
        self.timeline.end_settling();
        self.waits.forget(&self.timeline, half / 2);
        let known = self.work.values().filter_map(|work| Some(work.idle.as_ref()?.until_ns()));
        self.host.forget(known.min().unwrap_or(0).min(before_ns), half / 2);
    }

    /// Says what follows.
    pub fn finish(mut self) -> Explanation {
        self.settle(u64::MAX);
        let (mut memory, mut stalls) = (std::mem::take(&mut self.memory), std::mem::take(&mut self.stalls));
        let mut work = std::mem::take(&mut self.work);
        let worked = work.iter().filter(|(_, work)| work.submissions > 0);
        let mut devices: BTreeSet<u32> = worked.map(|(device, _)| *device).collect();
        devices.extend(memory.keys());
        devices.extend(self.takeovers.devices());
        let explained = devices.into_iter().map(|device| {
            let memory = memory.remove(&device).unwrap_or_default().finish(&self.names);
            let [(stalls, more_stalls), (asked_stalls, more_asked_stalls)] =
                self.stalls(stalls.remove(&device).unwrap_or_default());
            ExplainedDevice {
                peak_bytes: memory.peak_bytes,
                peak_ns: memory.peak_ns,
                memory: memory.tags,
                heap_peak_bytes: memory.heap_peak_bytes,
                is_pool: memory.is_pool,
                heap_changes: memory.heap_changes,
                refusals: memory.refusals,
                refused: memory.refused,
                takeovers: self.takeovers.of(device),
                losses: self.takeovers.losses(device).lost,
                brought_back: self.takeovers.losses(device).brought_back,
                stalls,
                more_stalls,
                asked_stalls,
                more_asked_stalls,
                ..self.device(device, work.remove(&device).unwrap_or_default())
            }
        });
        let devices: Vec<ExplainedDevice> = explained.collect();
        let clocks = self.clocks(&devices);
        let host = std::mem::take(&mut self.host);
        let (host_waits, more_host_waits) = self.host_waits(host);
        let (collectives, more_collectives) = self.collectives.largest(NAMED, &self.names);
        let command = &self.command;
        Explanation {
            is_virtual: if clocks.is_empty() {
                self.explanation.is_virtual
            } else {
                clocks.iter().all(|clock| clock.is_virtual)
            },
            devices,
            clocks,
            host_waits,
            more_host_waits,
            collectives,
            more_collectives,
            post_mortems: self.post_mortems.finish(),
            findings: self.findings.named,
            finding_count: self.findings.count,
            repeat: command.is_known().then(|| command.recorded_under(&REPEATED_BY)),
            is_repeat_whole: command.is_whole(),
            repeat_lacks: (!command.is_whole()).then(|| command.lacks().to_string()),
            records_itself: command.records_itself(),
            ..self.explanation
        }
    }

    fn submission(&mut self, work: &SubmissionRecord<'_>) {
        let (name, line) = (self.names.name(work.name), self.names.line(work.line));
        let work = Work { stamp: work.stamp, name, line, host: work.host, device: work.device };
        self.work.entry(work.stamp.stream.device).or_default().add(&work);
        self.timeline.add(work);
        self.came();
    }

    fn fault(&mut self, fault: &FaultRecord<'_>) {
        if fault.message.starts_with(NOT_BROUGHT_BACK) {
            self.takeovers.given_up(fault.device);
        }
        if self.explanation.faults.len() < MAX_FAULTS {
            let line = fault.line.map(|line| format!(" ({line})")).unwrap_or_default();
            self.explanation.faults.push(format!("{}{line}", fault.message));
        }
    }

    /// What is said about a device, but for its memory and stalls.
    fn device(&self, device: u32, work: DeviceWork) -> ExplainedDevice {
        let (host_ns, submissions, untimed_submissions) = (work.host_ns(), work.submissions, work.untimed);
        let tail_ns = work.untimed_tail_ns();
        let name = self.devices.get(&device).cloned().unwrap_or_default();
        let clock = self.idle_knowledge.clocks().of(device);
        let idle_unknown = self.idle_knowledge.unknown(device);
        let explained = ExplainedDevice {
            device,
            name,
            clock,
            submissions,
            untimed_submissions,
            idle_unknown,
            ..ExplainedDevice::default()
        };
        match work.idle {
            None => ExplainedDevice { span_ns: host_ns, ..explained },
            // What is missing may have run in any gap.
            Some(idle) if idle_unknown == Some(UnknownIdle::EventsMissing) => {
                ExplainedDevice { span_ns: idle.span_ns() + tail_ns, ..explained }
            }
            Some(idle) => {
                let explained = ExplainedDevice {
                    unknown_ns: idle.unknown_ns() + tail_ns,
                    earlier_ns: idle.earlier_ns(),
                    span_ns: idle.span_ns() + tail_ns,
                    busy_ns: Some(idle.busy_ns()),
                    ..explained
                };
                let mut reasons = idle.reasons.sorted();
                let late = reasons.iter().filter(|(why, _)| matches!(why, Why::HostBusy { .. }));
                let not_submitted_ns = late.fold(0, |sum: u64, (_, cost)| sum.saturating_add(cost.ns));
                let more_idle = cut(&mut reasons, NAMED);
                let idle = reasons.into_iter().map(|found| self.idle(found)).collect();
                ExplainedDevice { idle, more_idle, not_submitted_ns, ..explained }
            }
        }
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

    /// The longest waits of streams: those that the order of the work needs, and those that the program asked for.
    fn stalls(&self, found: Ranking<StallKey, StallCase>) -> [(Vec<StreamStall>, LeftOut); 2] {
        let stall = |(_, cost): (StallKey, Cost<StallCase>)| {
            let case = cost.longest;
            let writer = case.writer.map(|writer| self.work_name(&writer));
            StreamStall {
                waiter: self.work_name(&case.waiter),
                writer: writer.unwrap_or_else(|| named("", case.wait.writer)),
                reason: case.wait.reason,
                block: case.wait.block.map(|(block, _)| block),
                tag: case.wait.block.map(|(_, tag)| self.names.text(tag)).unwrap_or_default(),
                line: self.names.line_text(case.wait.line),
                unrelated: case.unrelated.map(|work| self.work_name(&work)),
                ns: cost.ns,
                times: cost.times,
                longest_ns: cost.longest_ns,
                unrelated_ns: case.unrelated_ns,
            }
        };
        let is_asked =
            |(_, cost): &(StallKey, Cost<StallCase>)| cost.longest.wait.reason == WaitReason::Asked;
        let (asked, needed): (Vec<_>, Vec<_>) = found.sorted().into_iter().partition(is_asked);
        [needed, asked].map(|mut found| {
            let left_out = cut(&mut found, NAMED);
            (found.into_iter().map(stall).collect(), left_out)
        })
    }

    /// The clocks of some devices.
    fn clocks(&self, devices: &[ExplainedDevice]) -> Vec<ExplainedClock> {
        let kind = |device: &ExplainedDevice| {
            let is_virtual = self.idle_knowledge.clock_kind(device.device) == RecordingClock::Virtual;
            (device.clock, is_virtual)
        };
        let clocks: BTreeMap<u32, bool> = devices.iter().map(kind).collect();
        clocks.into_iter().map(|(clock, is_virtual)| ExplainedClock { clock, is_virtual }).collect()
    }

    fn host_waits(&self, host: HostWaiting) -> (Vec<ExplainedHostWait>, Vec<MoreHostWaits>) {
        let wait = |(clock, (_, line), cost): (u32, (u8, _), Cost<HostCase>)| ExplainedHostWait {
            clock,
            cause: cost.longest.cause,
            line: self.names.line_text(line),
            awaited: cost.longest.awaited.map(|awaited| self.stamp_name(awaited)),
            ns: cost.ns,
            times: cost.times,
            longest_ns: cost.longest_ns,
        };
        let (mut largest, mut more) = (Vec::new(), Vec::new());
        for (clock, lines) in host.by_line() {
            let mut lines = lines.sorted();
            let left_out = cut(&mut lines, NAMED);
            largest.extend(lines.into_iter().map(|(line, cost)| wait((clock, line, cost))));
            if left_out.count > 0 {
                more.push(MoreHostWaits { clock, left_out });
            }
        }
        (largest, more)
    }

    fn work_name(&self, work: &Work) -> WorkName {
        let line = self.names.line_text(work.line);
        WorkName { line, ..named(&self.names.text(work.name), work.stamp) }
    }

    /// The name of a submission, as far as it is in the recording.
    fn stamp_name(&self, (stamp, work): (TraceStamp, Option<Work>)) -> WorkName {
        work.map_or_else(|| named("", stamp), |work| self.work_name(&work))
    }
}

fn named(name: &str, stamp: TraceStamp) -> WorkName {
    let TraceStamp { stream, number } = stamp;
    WorkName { name: name.to_owned(), line: None, device: stream.device, stream: stream.stream, number }
}
