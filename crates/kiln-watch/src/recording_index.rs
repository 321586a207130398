//! What is kept of a recording while it is read: rows, summaries, where things are in the file, and the few facts that are shown whole.
//!
//! All of it is bounded, however long the recording is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kiln_trace::{
    FaultRecord, FindingRecord, HeapChange, HeapRecord, HostWaitRecord, IdleKnowledge, MissingEvents,
    PostMortems, RankLog, RecordingClock, RefusedAllocation, RepeatCommand, SubmissionKind, SubmissionRecord,
    TagBytes, TakeoverRecord, TraceEvent, TraceStream, plain_text,
};
use serde::Serialize;

use crate::block_map::{BlockMap, KeptBlock, MemoryHole};
use crate::bucket_store::BucketStore;
use crate::collective_totals::Collectives;
use crate::device_facts::DeviceFacts;
use crate::finding_note::FindingNote;
use crate::gap_state::{DrawnWork, GapState, THREAD_WAIT};
use crate::heap_change_note::HeapChangeNote;
use crate::memory_series::MemorySeries;
use crate::name_table::{NameTable, WorkPlace};
use crate::page_table::PageTable;
use crate::timeline_row::{RowKind, TimelineRow};
use crate::worker_note::Workers;

/// Rows that are drawn.
const MAX_ROWS: usize = 1024;
const MAX_DEVICES: usize = 1024;
/// Faults, takeovers and damaged blocks that are listed.
const MAX_LISTED: usize = 500;
/// Tags that are named where an allocation was refused.
const NAMED_TAGS: usize = 3;

/// A fault of the recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FaultNote {
    /// The device.
    pub device: u32,
    /// What it says.
    pub message: String,
    /// Which line submitted the work, if that is known.
    pub line: Option<String>,
    /// The row of the work and its number, if that is known.
    pub work: Option<(u32, u64)>,
    /// When it was noticed.
    pub time_ns: u64,
}

/// A step of bringing a device back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TakeoverNote {
    /// The device.
    pub device: u32,
    /// The step.
    pub phase: &'static str,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// An allocation that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RefusalNote {
    /// The device.
    pub device: u32,
    /// What was asked for and where, what was free, and who held most, in the words of `kiln explain`.
    pub message: String,
    /// When.
    pub time_ns: u64,
    /// How many bytes were asked for.
    pub bytes: u64,
    /// The largest hole between blocks then, as far as addresses are recorded.
    pub hole: Option<MemoryHole>,
}

/// What is kept of a recording.
#[derive(Default)]
pub(crate) struct RecordingIndex {
    pub(crate) program: String,
    pub(crate) process: u32,
    is_virtual: bool,
    pub(crate) has_end_mark: bool,
    pub(crate) command: RepeatCommand,
    pub(crate) events: u64,
    pub(crate) missing: MissingEvents,
    pub(crate) hidden_events: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) names: NameTable,
    pub(crate) rows: Vec<TimelineRow>,
    pub(crate) buckets: BucketStore,
    pub(crate) pages: PageTable,
    pub(crate) memory: MemorySeries,
    pub(crate) faults: Vec<FaultNote>,
    pub(crate) fault_count: u64,
    pub(crate) findings: Vec<FindingNote>,
    pub(crate) finding_count: u64,
    pub(crate) takeovers: Vec<TakeoverNote>,
    pub(crate) workers: Workers,
    pub(crate) post_mortems: PostMortems,
    pub(crate) refusals: Vec<RefusalNote>,
    pub(crate) heap_changes: Vec<HeapChangeNote>,
    pub(crate) damaged: Vec<(u64, &'static str)>,
    pub(crate) collectives: Collectives,
    pub(crate) rank_log: RankLog,
    pub(crate) blocks: BlockMap,
    /// Until when streams had work from before the recording; the largest time if that is not known.
    pub(crate) earlier: HashMap<TraceStream, u64>,
    devices: BTreeMap<u32, DeviceFacts>,
    idle_knowledge: IdleKnowledge,
    row_of: HashMap<RowKind, u32>,
    gaps: Vec<GapState>,
}

impl RecordingIndex {
    /// Takes an event; the block it is in begins at `offset`.
    pub(crate) fn add(&mut self, event: &TraceEvent<'_>, offset: u64) {
        self.pages.begin_block(offset);
        self.events += 1;
        self.rank_log.add(event);
        self.idle_knowledge.add(event);
        self.workers.add(event);
        match event {
            TraceEvent::Start(start) => {
                self.program = plain_text(start.program).into_owned();
                self.process = start.process;
                self.is_virtual = start.clock == RecordingClock::Virtual;
            }
            TraceEvent::Device(device) => {
                // Another runtime of the program, after the last had ended.
                self.has_end_mark = false;
                let (name, clock) = (plain_text(device.name).into_owned(), device.clock);
                self.with_device(device.device, |facts| (facts.name, facts.clock) = (name, clock));
            }
            TraceEvent::Stream(stream) => {
                if let Some(row) = self.row(RowKind::of(stream.stream)) {
                    row.1.name = plain_text(stream.name).into_owned();
                }
            }
            TraceEvent::Submission(work) => self.submission(work),
            TraceEvent::StreamWait(wait) => {
                let Some((row, _)) = self.row(RowKind::of(wait.waiter.stream)) else { return };
                let Some(gap) = self.gaps.get_mut(row as usize) else { return };
                let _ = self.pages.touch(row, *gap);
                gap.wait(wait);
            }
            TraceEvent::HostWait(wait) => self.host_wait(wait),
            TraceEvent::Allocation(block) => {
                let tag = self.names.intern(block.tag);
                self.reach(block.time_ns, block.time_ns);
                self.memory.allocated(block.device, block.block, block.bytes, tag, block.time_ns);
                let line = block.line.map(|line| self.names.intern(&line.to_string()));
                self.blocks.allocated(block.device, KeptBlock::new(block, tag, line));
                self.with_device(block.device, |_| {});
            }
            TraceEvent::Free(block) => {
                let tag = self.names.intern(block.tag);
                self.reach(block.time_ns, block.time_ns);
                self.memory.freed(block.device, block.block, block.bytes, tag, block.time_ns);
                self.blocks.freed(block.device, block.block, block.time_ns);
            }
            TraceEvent::Heap(heap) => self.heap(heap),
            TraceEvent::Fault(fault) => self.fault(fault),
            TraceEvent::Finding(finding) => self.finding(finding),
            TraceEvent::Takeover(takeover) => self.takeover(takeover),
            TraceEvent::Collective(collective) => {
                let name = self.names.intern(collective.name);
                self.collectives.record(collective, name);
            }
            TraceEvent::Dropped(dropped) => {
                self.missing.add(dropped);
            }
            TraceEvent::Command(word) => self.command.add(word),
            TraceEvent::Earlier(work) if self.earlier.len() < MAX_ROWS => {
                self.earlier.insert(work.stamp.stream, work.until_ns.unwrap_or(u64::MAX));
            }
            TraceEvent::Earlier(_) => {}
            TraceEvent::PostMortem(line) => self.post_mortems.add(line),
            TraceEvent::Worker(worker) => self.with_device(worker.device, |_| {}),
            TraceEvent::End(end) => {
                self.has_end_mark = true;
                self.reach(end.time_ns, end.time_ns);
            }
        }
    }

    fn takeover(&mut self, takeover: &TakeoverRecord) {
        self.reach(takeover.span.begin_ns, takeover.span.end_ns);
        self.with_device(takeover.device, |facts| facts.takeover(*takeover));
        if self.takeovers.len() < MAX_LISTED {
            self.takeovers.push(TakeoverNote {
                device: takeover.device,
                phase: takeover.phase.word(),
                begin_ns: takeover.span.begin_ns,
                end_ns: takeover.span.end_ns,
            });
        }
    }

    /// What was read so far ends here.
    pub(crate) fn read_to(&mut self, offset: u64) {
        self.pages.end_block(offset);
    }

    /// A block that could not be read.
    pub(crate) fn damage(&mut self, offset: u64, what: &'static str) {
        self.idle_knowledge.leave_out();
        if self.damaged.len() < MAX_LISTED && self.damaged.iter().all(|(known, _)| *known != offset) {
            self.damaged.push((offset, what));
        }
    }

    /// Which of the recording's clocks a device has.
    pub(crate) fn clock_of(&self, device: u32) -> u32 {
        self.devices.get(&device).map_or(0, |facts| facts.clock)
    }

    /// How many clocks the devices have.
    pub(crate) fn clocks(&self) -> usize {
        self.devices.values().map(|facts| facts.clock).collect::<BTreeSet<_>>().len()
    }

    /// Whether all times are those of simulated devices.
    pub(crate) fn is_virtual(&self) -> bool {
        match self.devices.is_empty() {
            true => self.is_virtual,
            false => self.devices.keys().all(|device| self.is_virtual_clock(*device)),
        }
    }

    /// Whether the clock of a device is that of a simulated machine.
    fn is_virtual_clock(&self, device: u32) -> bool {
        self.idle_knowledge.clock_kind(device) == RecordingClock::Virtual
    }

    /// The row of a wait of the program.
    pub(crate) fn row_of_wait(&self, wait: &HostWaitRecord<'_>) -> RowKind {
        RowKind::Thread { thread: wait.thread, clock: self.clock_of(wait.device) }
    }

    /// The number of a row, if it is shown.
    pub(crate) fn row_number(&self, kind: RowKind) -> Option<u32> {
        self.row_of.get(&kind).copied()
    }

    /// The devices, with the state of each at the end.
    pub(crate) fn devices(&self) -> Vec<DeviceFacts> {
        let facts = |(device, facts): (&u32, &DeviceFacts)| {
            let of_device =
                |row: &&TimelineRow| matches!(row.kind, RowKind::Stream { device: of, .. } if of == *device);
            let streams = self.rows.iter().filter(of_device).count() as u64;
            let unknown = self.idle_knowledge.unknown_at_end(*device, facts.end_ns);
            let is_virtual = self.is_virtual_clock(*device);
            let state = facts.state_at(self.end_ns, self.has_end_mark, unknown);
            let mut facts = facts.clone();
            facts.is_virtual = is_virtual;
            facts.device = *device;
            facts.state = state;
            facts.streams = streams;
            (facts.used_bytes, facts.peak_bytes) = self.memory.now_and_peak(*device);
            facts
        };
        self.devices.iter().map(facts).collect()
    }

    fn submission(&mut self, work: &SubmissionRecord<'_>) {
        let name = self.names.intern(work.name);
        let span = work.span();
        self.reach(work.host.begin_ns.min(span.begin_ns), span.end_ns);
        self.with_device(work.stamp.stream.device, |facts| {
            facts.submissions += 1;
            facts.untimed += u64::from(work.device.is_none());
            facts.end_ns = facts.end_ns.max(span.end_ns);
        });
        if work.kind == SubmissionKind::Collective {
            self.collectives.submission(work.stamp, span);
        }
        let Some((number, row)) = self.row(RowKind::of(work.stamp.stream)) else { return };
        row.untimed += u64::from(work.device.is_none());
        let Some(gap) = self.gaps.get_mut(number as usize) else { return };
        let before = *gap;
        let drawn = gap.submission(work, number, name);
        self.draw(&drawn, before);
    }

    fn host_wait(&mut self, wait: &HostWaitRecord<'_>) {
        let name = self.names.intern(wait.cause.words());
        self.reach(wait.span.begin_ns, wait.span.end_ns);
        let Some((number, row)) = self.row(self.row_of_wait(wait)) else { return };
        let drawn = DrawnWork {
            row: number,
            name,
            number: row.count + 1,
            begin_ns: wait.span.begin_ns,
            end_ns: wait.span.end_ns,
            gap_ns: wait.span.begin_ns,
            ready_ns: wait.span.begin_ns,
            waits: false,
            is_timed: true,
            kind: THREAD_WAIT,
        };
        self.draw(&drawn, GapState::default());
    }

    fn draw(&mut self, drawn: &DrawnWork, before: GapState) {
        if let Some(row) = self.rows.get_mut(drawn.row as usize) {
            row.count += 1;
            row.begin_ns = row.begin_ns.min(drawn.begin_ns);
            row.end_ns = row.end_ns.max(drawn.end_ns);
        }
        let DrawnWork { row, number, begin_ns, end_ns, .. } = *drawn;
        self.names.count(drawn.name, WorkPlace { row, number, begin_ns, end_ns });
        self.buckets.add(drawn);
        self.pages.add(drawn, before);
    }

    fn fault(&mut self, fault: &FaultRecord<'_>) {
        self.fault_count += 1;
        self.reach(fault.time_ns, fault.time_ns);
        self.with_device(fault.device, |facts| facts.fault(fault));
        if self.faults.len() < MAX_LISTED {
            let work = fault
                .stamp
                .and_then(|stamp| Some((self.row_number(RowKind::of(stamp.stream))?, stamp.number)));
            self.faults.push(FaultNote {
                device: fault.device,
                message: plain_text(fault.message).into_owned(),
                line: fault.line.map(|line| line.to_string()),
                work,
                time_ns: fault.time_ns,
            });
        }
    }

    fn finding(&mut self, finding: &FindingRecord<'_>) {
        let count = finding.more.max(1);
        self.finding_count = self.finding_count.saturating_add(count);
        self.reach(finding.time_ns, finding.time_ns);
        self.with_device(finding.device, |facts| facts.findings = facts.findings.saturating_add(count));
        if finding.more == 0 && self.findings.len() < MAX_LISTED {
            // Its work may come later.
            let row = finding.stamp.and_then(|stamp| Some(self.row(RowKind::of(stamp.stream))?.0));
            self.findings.push(FindingNote::of(finding, row));
        }
    }

    fn heap(&mut self, heap: &HeapRecord<'_>) {
        self.reach(heap.time_ns, heap.time_ns);
        self.with_device(heap.device, |facts| facts.heap(heap));
        self.memory.heap(heap.device, heap.held_bytes, heap.time_ns);
        if !heap.change.is_refusal() {
            if self.heap_changes.len() < MAX_LISTED {
                self.heap_changes.push(HeapChangeNote::of(heap));
            }
            return;
        }
        if self.refusals.len() >= MAX_LISTED {
            return;
        }
        let tags = self.memory.largest_tags(heap.device, NAMED_TAGS).into_iter().map(|(tag, bytes)| {
            let tag = tag.map_or("(other tags)", |tag| self.names.text(tag)).to_owned();
            TagBytes { tag, bytes }
        });
        let refused = RefusedAllocation {
            bytes: heap.bytes,
            is_too_large: heap.change == HeapChange::TooLarge,
            line: heap.line.map(|line| line.to_string()),
            time_ns: heap.time_ns,
            limit_bytes: (heap.limit_bytes > 0).then_some(heap.limit_bytes),
            held_bytes: heap.held_bytes,
            is_pool: self.devices.get(&heap.device).is_some_and(|facts| facts.is_pool),
            free_bytes: heap.free_bytes,
            largest_free_bytes: heap.largest_free_bytes,
            tags: tags.collect(),
        };
        let message = refused.to_string();
        let hole = self.blocks.largest_hole(heap.device);
        self.refusals.push(RefusalNote {
            device: heap.device,
            message,
            time_ns: heap.time_ns,
            bytes: heap.bytes,
            hole,
        });
    }

    fn with_device(&mut self, device: u32, change: impl FnOnce(&mut DeviceFacts)) {
        if self.devices.len() < MAX_DEVICES || self.devices.contains_key(&device) {
            change(self.devices.entry(device).or_default());
        }
    }

    /// The recording goes on at least from here to there.
    fn reach(&mut self, begin_ns: u64, end_ns: u64) {
        if self.end_ns == 0 {
            self.begin_ns = begin_ns;
        }
        self.begin_ns = self.begin_ns.min(begin_ns);
        self.end_ns = self.end_ns.max(end_ns);
    }

    /// A row, which is made if there is room.
    fn row(&mut self, kind: RowKind) -> Option<(u32, &mut TimelineRow)> {
        let number = match self.row_of.get(&kind) {
            Some(number) => *number,
            None if self.rows.len() >= MAX_ROWS => {
                self.hidden_events += 1;
                return None;
            }
            None => {
                let number = self.rows.len() as u32;
                self.rows.push(TimelineRow::new(kind));
                self.gaps.push(GapState::default());
                self.row_of.insert(kind, number);
                number
            }
        };
        self.rows.get_mut(number as usize).map(|row| (number, row))
    }
}
