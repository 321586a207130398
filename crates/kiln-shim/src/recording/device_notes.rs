//! What one device is given to do, seen from a layer around its driver.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::Layer;
use kiln_driver::{
    Command, Driver, Error, EventId, FunctionId, Image, LaunchCommand, ModuleId, Result, Site, StreamId,
    Submission, Timeout, WaitTarget,
};
use kiln_trace::{
    HostWaitCause, HostWaitRecord, LaunchSize, StreamRecord, StreamWaitRecord, SubmissionKind,
    SubmissionRecord, TimeSpan, TraceEvent, TraceLine, TraceStamp, TraceStream, WaitReason, interned_name,
};

use super::pending_work::PendingWork;
use super::{ProgramRecording, line_here, recording};

thread_local! {
    /// When the call began that the thread is in.
    static BEGAN: Cell<u64> = const { Cell::new(0) };
    /// The number of the thread in the recording.
    static THREAD: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The device as the recording knows it.
pub(super) struct DeviceNotes {
    /// Its number in the recording.
    device: u32,
    /// Whether it is told later when work ran.
    has_times: bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    streams: HashMap<StreamId, StreamNotes>,
    /// What was last on the stream of an event when it was recorded.
    events: HashMap<EventId, TraceStamp>,
    /// The names of kernels; none for those that kiln itself has.
    kernels: HashMap<FunctionId, Option<&'static str>>,
    /// Modules of functions of the host.
    of_host: HashSet<ModuleId>,
    /// How many streams there were.
    numbered: u32,
}

/// What is known of a stream.
struct StreamNotes {
    stream: TraceStream,
    /// The number of its last work.
    last: u64,
    /// What its next work waits for, and which lines asked for that.
    waits: Vec<(TraceStamp, Option<TraceLine<'static>>)>,
    pending: PendingWork,
}

/// The layer that fills them.
pub(super) struct NotingLayer(pub(super) Arc<DeviceNotes>);

impl DeviceNotes {
    pub(super) fn new(device: u32, has_times: bool) -> Self {
        Self { device, has_times, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work ran in a time.
    pub(super) fn ran(&self, recording: &ProgramRecording, at: (StreamId, Submission), span: TimeSpan) {
        let mut known = self.known();
        let Some(notes) = known.streams.get_mut(&at.0) else { return };
        notes
            .pending
            .ran(at.1.0, span)
            .into_iter()
            .for_each(|work| recording.push(TraceEvent::Submission(work)));
    }

    /// Nothing runs any more: writes what is left.
    pub(super) fn end(&self, recording: &ProgramRecording) {
        for notes in self.known().streams.values_mut() {
            notes.pending.rest().into_iter().for_each(|work| recording.push(TraceEvent::Submission(work)));
        }
    }

    /// The work at a place, as the recording names it.
    pub(super) fn stamp(&self, site: &Site) -> Option<TraceStamp> {
        let known = self.known();
        let stream = known.streams.get(&site.stream)?.stream;
        Some(TraceStamp { stream, number: site.submission.0 })
    }

    fn created(&self, recording: &ProgramRecording, stream: StreamId) {
        let mut known = self.known();
        let number = known.numbered;
        known.numbered += 1;
        let name = TraceStream { device: self.device, stream: number };
        let notes = StreamNotes { stream: name, last: 0, waits: Vec::new(), pending: PendingWork::default() };
        known.streams.insert(stream, notes);
        drop(known);
        let text = interned_name(&stream.to_string());
        recording.push(TraceEvent::Stream(StreamRecord { stream: name, name: text }));
    }

    fn submitted(
        &self,
        recording: &ProgramRecording,
        (stream, command): (StreamId, &Command<'_>),
        number: u64,
        host: TimeSpan,
    ) {
        let line = line_here();
        let mut known = self.known();
        let known = &mut *known;
        let Some(notes) = known.streams.get_mut(&stream) else { return };
        let (kind, name, size, bytes) = match command {
            Command::Signal(event) => {
                known.events.insert(*event, TraceStamp { stream: notes.stream, number: notes.last });
                return;
            }
            Command::Wait(event) => {
                let recorded = known.events.get(event).filter(|writer| writer.stream != notes.stream);
                let awaited = recorded.filter(|writer| writer.number > 0);
                notes.waits.extend(awaited.map(|writer| (*writer, line)));
                return;
            }
            Command::Copy { bytes, .. } => (SubmissionKind::Copy, "copy", None, *bytes),
            Command::Fill { pattern, count, .. } => {
                (SubmissionKind::Fill, "fill", None, count.saturating_mul(pattern.bytes()))
            }
            Command::Graph(_) => (SubmissionKind::Graph, "graph", None, 0),
            Command::Launch(launch) => match known.kernels.get(&launch.function) {
                Some(Some(name)) => (SubmissionKind::Kernel, *name, Some(size_of_launch(launch)), 0),
                _ => (SubmissionKind::Other, "function of the host", None, 0),
            },
            _ => (SubmissionKind::Other, "work", None, 0),
        };
        let stamp = TraceStamp { stream: notes.stream, number };
        for (writer, asked) in notes.waits.drain(..) {
            recording.push(TraceEvent::StreamWait(StreamWaitRecord {
                waiter: stamp,
                writer,
                covers: writer.number,
                reason: WaitReason::Asked,
                block: None,
                line: asked,
                time_ns: host.begin_ns,
            }));
        }
        notes.last = number;
        let work = SubmissionRecord { stamp, kind, name, line, size, bytes, host, device: None };
        let ready = if self.has_times { notes.pending.push(work) } else { Some(work) };
        if let Some(work) = ready {
            recording.push(TraceEvent::Submission(work));
        }
    }

    fn waited(&self, recording: &ProgramRecording, target: WaitTarget, span: TimeSpan) {
        if span.begin_ns == span.end_ns {
            return;
        }
        let known = self.known();
        let (cause, awaited) = match target {
            WaitTarget::Stream(stream) => {
                let notes = known.streams.get(&stream).filter(|notes| notes.last > 0);
                let stamp = notes.map(|notes| TraceStamp { stream: notes.stream, number: notes.last });
                (HostWaitCause::Synchronize, stamp)
            }
            WaitTarget::Event(event) => (HostWaitCause::Ticket, known.events.get(&event).copied()),
            WaitTarget::Findings => return,
        };
        drop(known);
        let (device, thread) = (self.device, thread_number());
        let awaited = awaited.filter(|stamp| stamp.number > 0);
        recording.push(TraceEvent::HostWait(HostWaitRecord {
            device,
            thread,
            cause,
            awaited,
            line: line_here(),
            span,
        }));
    }
}

impl Layer for NotingLayer {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> Result<()> {
        if let Some(recording) = recording().filter(|_| is_timed(call)) {
            BEGAN.set(recording.now());
        }
        Ok(())
    }

    fn after(&self, call: &Call<'_>, answer: std::result::Result<Answer<'_>, &Error>) {
        let Some(recording) = recording() else { return };
        let notes = &self.0;
        let span = || TimeSpan::new(BEGAN.get(), recording.now());
        match (call, answer) {
            (Call::Submit { stream, command }, Ok(Answer::Submission(number))) => {
                notes.submitted(recording, (*stream, *command), number.0, span());
            }
            (Call::Wait { target, timeout }, _) if *timeout != Timeout::Poll => {
                notes.waited(recording, *target, span());
            }
            (Call::CreateStream { .. }, Ok(Answer::Stream(stream))) => notes.created(recording, stream),
            (Call::Load { image: Image::HostKernels(_) }, Ok(Answer::Module(module))) => {
                notes.known().of_host.insert(module);
            }
            (Call::Function { module, name }, Ok(Answer::Function(function))) => {
                let mut known = notes.known();
                let kernel = if known.of_host.contains(module) { None } else { Some(interned_name(name)) };
                known.kernels.insert(function.id, kernel);
            }
            _ => {}
        }
    }
}

/// Whether it matters how long a call took.
fn is_timed(call: &Call<'_>) -> bool {
    matches!(call, Call::Submit { .. } | Call::Wait { .. })
}

fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    THREAD.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        THREAD.set(Some(number));
        number
    })
}

fn size_of_launch(launch: &LaunchCommand<'_>) -> LaunchSize {
    let (grid, block) = (launch.grid, launch.block);
    LaunchSize {
        grid: [grid.x, grid.y, grid.z],
        block: [block.x, block.y, block.z],
        shared_bytes: launch.dynamic_shared_bytes,
    }
}
