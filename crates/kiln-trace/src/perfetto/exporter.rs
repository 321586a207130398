//! Makes a Perfetto trace of a recording.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read, Seek, Write};

use super::flows::{FlowFinder, Flows, OpenWaits};
use super::memory_counters::MemoryCounters;
use super::note::{Note, OpenWait, size_words};
use super::packet_sequence::{Described, Named, PacketSequence, Shown};
use super::schema::{clock, packet, trace};
use super::track::{Track, TrackNames};
use super::wire::Wire;
use crate::file::{ReadError, RecordingReader};
use crate::record::{
    CollectiveRecord, DropCause, FaultRecord, FindingRecord, HeapRecord, RecordingClock, StartRecord,
    SubmissionKind, SubmissionRecord, TakeoverPhase, TimeSpan, TraceEvent, TraceStamp, WorkerRecord,
};

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(io::Error),
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PerfettoSummary {
    /// Events of the recording.
    pub events: u64,
    /// Submissions among them.
    pub submissions: u64,
    /// Arrows from work to what waited for it.
    pub arrows: u64,
    /// Waits without an arrow, because one of both ends is not in the recording.
    pub arrows_left_out: u64,
    /// Events that the recording itself misses.
    pub dropped_events: u64,
    /// Why it misses them, in words; the disk before all else. None if it misses none.
    pub dropped_because: Option<&'static str>,
    /// Bytes of the trace.
    pub bytes: u64,
}

/// Reads a recording twice and writes it as a trace that Perfetto opens.
///
/// Devices with different clocks ([`DeviceRecord::clock`](crate::DeviceRecord::clock)) are in groups of tracks whose names say that their times cannot be compared.
///
/// Memory is needed for the waits of the recording, 12 to 13 bytes each, and for its names.
///
/// # Errors
/// What the recording says while it is read, and the file while it is written.
pub fn export_perfetto<R: Read + Seek>(
    recording: &mut RecordingReader<R>,
    out: impl Write,
) -> Result<PerfettoSummary, ExportError> {
    let (mut finder, mut clocks, mut pools) = (FlowFinder::default(), BTreeMap::new(), BTreeSet::new());
    while let Some(event) = recording.next_event()? {
        finder.see(&event);
        match event {
            TraceEvent::Device(device) => {
                clocks.insert(device.device, (device.clock, device.clock_kind));
            }
            TraceEvent::Heap(heap) if heap.change.is_of_pool() => {
                pools.insert(heap.device);
            }
            _ => {}
        }
    }
    let mut exporter = Exporter::new(out, finder.finish(), TrackNames::new(clocks, pools));
    recording.rewind()?;
    while let Some(event) = recording.next_event()? {
        exporter.event(&event).map_err(ExportError::Write)?;
    }
    exporter.finish().map_err(ExportError::Write)
}

/// The second look at a recording.
struct Exporter<W> {
    out: W,
    packets: [Wire; 2],
    names: TrackNames,
    sequences: HashMap<Track, PacketSequence>,
    flows: Flows,
    /// The next arrow, counted as the first look did.
    next_arrow: u64,
    open: OpenWaits<OpenWait>,
    collectives: HashMap<TraceStamp, Collective>,
    memory: MemoryCounters,
    /// The tracks of the workers that have the devices.
    workers: BTreeMap<u32, Track>,
    summary: PerfettoSummary,
}

/// What a collective shows besides its submission.
struct Collective {
    rank: u32,
    ranks: u32,
    bytes: u64,
    communicator: String,
}

/// The sequence of packets that belong to no track.
const SEQUENCE_OF_NO_TRACK: u64 = 1;
/// Tracks are numbered from here.
const FIRST_TRACK: u32 = 2;

impl<W: Write> Exporter<W> {
    fn new(out: W, flows: Flows, names: TrackNames) -> Self {
        let summary = PerfettoSummary {
            arrows: flows.drawn(),
            arrows_left_out: flows.left_out(),
            ..PerfettoSummary::default()
        };
        Self {
            out,
            packets: Default::default(),
            names,
            sequences: HashMap::new(),
            flows,
            next_arrow: 0,
            open: OpenWaits::default(),
            collectives: HashMap::new(),
            memory: MemoryCounters::default(),
            workers: BTreeMap::new(),
            summary,
        }
    }

    fn event(&mut self, event: &TraceEvent<'_>) -> io::Result<()> {
        self.summary.events += 1;
        match event {
            TraceEvent::Start(start) => self.start(start),
            TraceEvent::Device(device) => {
                self.names.name_device(device.device, device.name);
                self.track(Track::Device(device.device)).map(|_| ())
            }
            TraceEvent::Stream(stream) => {
                self.names.name_stream(stream.stream, stream.name);
                Ok(())
            }
            TraceEvent::Submission(work) => self.submission(work),
            TraceEvent::StreamWait(wait) => {
                self.open.add(wait, OpenWait::of(wait));
                Ok(())
            }
            TraceEvent::HostWait(wait) => {
                let track = Track::Thread { device: wait.device, thread: wait.thread };
                let named = Named { name: wait.cause.words(), line: wait.line, ..Named::default() };
                self.slice(track, wait.span, named)
            }
            TraceEvent::Allocation(block) => {
                let tag = self.names.tag(block.tag);
                let used = self.memory.allocated(block.device, tag, block.bytes);
                self.show(Track::Memory { device: block.device, tag }, block.time_ns, Shown::Bytes(used))
            }
            TraceEvent::Free(block) => {
                let tag = self.names.tag(block.tag);
                let used = self.memory.freed(block.device, tag, block.bytes);
                self.show(Track::Memory { device: block.device, tag }, block.time_ns, Shown::Bytes(used))
            }
            TraceEvent::Heap(heap) => self.heap(heap),
            TraceEvent::Fault(fault) => self.fault(fault),
            TraceEvent::Finding(finding) => self.finding(finding),
            TraceEvent::Worker(worker) => self.worker(worker),
            TraceEvent::Takeover(takeover) => {
                if takeover.phase == TakeoverPhase::Lost {
                    self.end_worker(takeover.device, takeover.span.begin_ns)?;
                }
                let named = Named { name: takeover.phase.word(), ..Named::default() };
                self.slice(Track::Takeover(takeover.device), takeover.span, named)
            }
            TraceEvent::Collective(collective) => {
                let CollectiveRecord { rank, ranks, bytes, .. } = *collective;
                let communicator = format!("{:08x}", collective.communicator);
                self.collectives.insert(collective.stamp, Collective { rank, ranks, bytes, communicator });
                Ok(())
            }
            TraceEvent::Dropped(dropped) => {
                self.summary.dropped_events = self.summary.dropped_events.saturating_add(dropped.events);
                let why = dropped.cause.words();
                if self.summary.dropped_because.is_none() || dropped.cause != DropCause::TooFast {
                    self.summary.dropped_because = Some(why);
                }
                let name = format!("{} events are missing before this: {why}", dropped.events);
                let named = Named { name: &name, ..Named::default() };
                self.show(Track::Faults(0), dropped.time_ns, Shown::Instant(named))
            }
            TraceEvent::End(end) => {
                let devices: Vec<u32> = self.workers.keys().copied().collect();
                devices.into_iter().try_for_each(|device| self.end_worker(device, end.time_ns))
            }
            // Traces have the fault itself; a page of text is no event.
            TraceEvent::PostMortem(_) | TraceEvent::Command(_) | TraceEvent::Earlier(_) => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<PerfettoSummary> {
        self.out.flush()?;
        Ok(self.summary)
    }

    /// Says when the recording began on the clock of the wall.
    fn start(&mut self, start: &StartRecord<'_>) -> io::Result<()> {
        if start.clock == RecordingClock::Virtual || start.unix_ns == 0 {
            return Ok(());
        }
        let [to, _] = &mut self.packets;
        to.clear();
        to.number(packet::SEQUENCE, SEQUENCE_OF_NO_TRACK);
        to.message(packet::CLOCK_SNAPSHOT, |to| {
            for (id, time) in [(clock::BOOTTIME, 0), (clock::REALTIME, start.unix_ns)] {
                to.message(clock::CLOCKS, |to| {
                    to.number(clock::ID, id).number(clock::TIMESTAMP, time);
                });
            }
        });
        self.write(0)
    }

    fn submission(&mut self, work: &SubmissionRecord<'_>) -> io::Result<()> {
        self.summary.submissions += 1;
        let (mut from_here, mut to_here, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        let (flows, next) = (&self.flows, &mut self.next_arrow);
        self.open.take(work.stamp, |wait| {
            if flows.is_drawn(*next) {
                to_here.push(*next + 1);
            }
            *next += 1;
            waits.push(wait);
        });
        self.flows.from(work.stamp, &mut from_here);
        // Number 0 means no arrow to some readers.
        from_here.iter_mut().for_each(|arrow| *arrow += 1);
        let size = work.size.as_ref().map(size_words);
        let mut notes = vec![Note::Submission(work.stamp.number)];
        if work.kind == SubmissionKind::Library {
            notes.push(Note::Kind("library call"));
        }
        notes.extend(size.as_deref().map(Note::Size));
        if work.bytes > 0 && work.kind != SubmissionKind::Kernel {
            notes.push(Note::Bytes(work.bytes));
        }
        notes.extend((1..).zip(&waits).flat_map(|(number, wait)| wait.notes(number)));
        let collective = self.collectives.remove(&work.stamp);
        if let Some(collective) = &collective {
            if work.bytes == 0 {
                notes.push(Note::Bytes(collective.bytes));
            }
            notes.push(Note::Rank(collective.rank.into()));
            notes.push(Note::Ranks(collective.ranks.into()));
            notes.push(Note::Communicator(&collective.communicator));
        }
        let track = match work.device {
            Some(_) => Track::Stream(work.stamp.stream),
            None => Track::Submitted(work.stamp.stream),
        };
        let (from_here, to_here) = (&*from_here, &*to_here);
        self.slice(
            track,
            work.span(),
            Named { name: work.name, line: work.line, notes: &notes, from_here, to_here },
        )
    }

    /// A process has a device from here on: its track, and a slice that lasts until the device is lost.
    fn worker(&mut self, worker: &WorkerRecord<'_>) -> io::Result<()> {
        let WorkerRecord { device, process, name, time_ns } = *worker;
        self.end_worker(device, time_ns)?;
        self.names.name_worker(process, name);
        let track = Track::Worker { device, process };
        let what = self.names.of(Track::Device(device));
        self.workers.insert(device, track);
        self.show(track, time_ns, Shown::Begin(Named { name: &what, ..Named::default() }))
    }

    /// The worker of a device has it no more.
    fn end_worker(&mut self, device: u32, time_ns: u64) -> io::Result<()> {
        let Some(track) = self.workers.remove(&device) else { return Ok(()) };
        self.show(track, time_ns, Shown::End)
    }

    /// What the heap holds, and an instant for what it did.
    fn heap(&mut self, heap: &HeapRecord<'_>) -> io::Result<()> {
        self.show(Track::Heap(heap.device), heap.time_ns, Shown::Bytes(heap.held_bytes))?;
        let tag = Some(heap.tag).filter(|tag| !tag.is_empty()).map(Note::Tag);
        let notes: Vec<Note<'_>> = [Note::Bytes(heap.bytes)].into_iter().chain(tag).collect();
        let named = Named { name: heap.change.words(), line: heap.line, notes: &notes, ..Named::default() };
        let is_refusal = heap.change.is_refusal();
        let track = if is_refusal { Track::Faults(heap.device) } else { Track::HeapChanges(heap.device) };
        self.show(track, heap.time_ns, Shown::Instant(named))
    }

    fn fault(&mut self, fault: &FaultRecord<'_>) -> io::Result<()> {
        let number = fault.stamp.map(|stamp| Note::Submission(stamp.number));
        let named =
            Named { name: fault.message, line: fault.line, notes: number.as_slice(), ..Named::default() };
        self.show(Track::Faults(fault.device), fault.time_ns, Shown::Instant(named))
    }

    /// An instant at the end of the work, with the line of the kernel.
    fn finding(&mut self, finding: &FindingRecord<'_>) -> io::Result<()> {
        let track = Track::Findings(finding.device);
        if finding.more > 0 {
            let name = format!("{} more findings", finding.more);
            let named = Named { name: &name, ..Named::default() };
            return self.show(track, finding.time_ns, Shown::Instant(named));
        }
        let number = finding.stamp.map(|stamp| Note::Submission(stamp.number));
        let kernel = Some(finding.kernel).filter(|kernel| !kernel.is_empty()).map(Note::Kernel);
        let notes: Vec<Note<'_>> =
            number.into_iter().chain(kernel).chain([Note::Finding(finding.message)]).collect();
        let line = finding.line.or(finding.submitted);
        let named = Named { name: finding.rule, line, notes: &notes, ..Named::default() };
        self.show(track, finding.time_ns, Shown::Instant(named))
    }

    /// A slice. One that begins before the last one of its track ended is shortened.
    fn slice(&mut self, track: Track, span: TimeSpan, named: Named<'_>) -> io::Result<()> {
        self.show(track, span.begin_ns, Shown::Begin(named))?;
        self.show(track, span.end_ns, Shown::End)
    }

    /// Writes one packet of a track.
    fn show(&mut self, track: Track, time: u64, shown: Shown<'_>) -> io::Result<()> {
        self.track(track)?;
        let Some(sequence) = self.sequences.get_mut(&track) else { return Ok(()) };
        let [to, _] = &mut self.packets;
        to.clear();
        sequence.packet(time.max(sequence.last_time()), shown, to);
        self.write(0)
    }

    /// Begins a track, and that of its device before it; the number of its sequence.
    fn track(&mut self, track: Track) -> io::Result<u32> {
        if let Some(sequence) = self.sequences.get(&track) {
            return Ok(sequence.id());
        }
        let parent = self.names.parent_of(track).map(|parent| self.track(parent)).transpose()?;
        let id = FIRST_TRACK.saturating_add(u32::try_from(self.sequences.len()).unwrap_or(u32::MAX));
        self.packets.iter_mut().for_each(Wire::clear);
        let name = self.names.of(track);
        let (is_counter, process) = (track.is_counter(), track.process());
        let described = Described { name: &name, parent, is_counter, process };
        let sequence = PacketSequence::begin(id, &described, &mut self.packets);
        if let Entry::Vacant(place) = self.sequences.entry(track) {
            place.insert(sequence);
        }
        self.write(0)?;
        self.write(1)?;
        Ok(id)
    }

    /// Writes a packet that is ready.
    fn write(&mut self, which: usize) -> io::Result<()> {
        let Some(wire) = self.packets.get(which) else { return Ok(()) };
        let mut head = Wire::default();
        head.length(trace::PACKET, wire.bytes().len());
        self.out.write_all(head.bytes())?;
        self.out.write_all(wire.bytes())?;
        self.summary.bytes += (head.bytes().len() + wire.bytes().len()) as u64;
        Ok(())
    }
}
