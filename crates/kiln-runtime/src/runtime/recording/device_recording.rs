//! The recording of one device.

mod found_in_work;

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kiln_driver::{Timeout, WaitTarget};
use kiln_mem::{AllocTag, DeviceBlock, Exhausted};
use kiln_order::{MAX_STREAMS, Stamp, StreamKey};
use kiln_trace::{
    AllocationRecord, CollectiveNote, DeviceRecord, FreeRecord, HostWaitCause, HostWaitRecord, KnownName,
    ProgramRecorder, RecordingClock, RecordingLane, StreamRecord, SubmissionKind, SubmissionNote, TimeSpan,
    TraceEvent, TraceLine, TraceStream, interned_name,
};

use super::Place;
use super::activity_times::ActivityTimes;
use super::device_origin::Origin;
use super::device_times::{DeviceTimes, Measuring, TakenTimes};
use super::earlier_work::EarlierWork;
use super::finding_notes::FindingNotes;
use super::measured_work::{MAX_MEASURED, MAX_SIMULATED, Measured, MeasuredWork, TimeSource};
use super::memory_notes::{MemoryNotes, work_line};
use super::post_mortem_notes::PostMortemNotes;
use super::processor_counter;
use super::stream_lanes::{KnownBlock, LaneTable, StreamLanes, short};
use super::takeover_log::{FaultLog, TakeoverLog};
use super::work_context::{self, CollectiveLabel};
use super::work_label::WorkLabel;
use super::written_works::WrittenWorks;
use crate::device_state::{Cause, Phase};
use crate::error::Error;
use crate::runtime::RecoveryHook;
use crate::runtime::inner::Inner;
use crate::runtime::timing::EventPair;

/// Submissions of a stream whose times are not read, after which the device is asked whether the oldest is done.
const ASK_AFTER: usize = 64;

/// The recording of one device.
// In this order: what a launch looks at stands first, in one cache line.
#[repr(C)]
pub(crate) struct DeviceRecording {
    /// The lanes of the streams, as `lanes` has them.
    table: LaneTable,
    /// Whether ticks are those of the processor's counter.
    counts: bool,
    /// Whether its times are those of a simulated machine.
    is_virtual: bool,
    is_measured: bool,
    /// Whether the device has findings, for which work is remembered.
    is_checked: bool,
    lanes: Arc<StreamLanes>,
    /// Events of no stream.
    host: Arc<RecordingLane>,
    /// Set if the device's times are taken by events.
    origin: Option<Mutex<Origin>>,
    /// Each first one of so many submissions has a time.
    every: u32,
    /// Submissions that were asked whether they have.
    turn: AtomicU32,
    /// Set if they come from CUPTI.
    activity: Option<ActivityTimes>,
    taken: TakenTimes,
    /// By the key of the stream.
    measured: Vec<Mutex<MeasuredWork>>,
    faults: Arc<FaultLog>,
    post_mortems: Arc<PostMortemNotes>,
    findings: FindingNotes,
    written: WrittenWorks,
    earlier: EarlierWork,
    shares_file: bool,
    memory: MemoryNotes,
    has_ended: AtomicBool,
}

impl DeviceRecording {
    pub(super) fn begin(
        runtime: &Inner,
        recorder: Arc<ProgramRecorder>,
        Place { device, start, shares_file, clock: file_clock }: Place,
        Measuring { taken, source, origin }: Measuring,
    ) -> Self {
        let (driver, clock) = (runtime.driver(), runtime.recording_clock());
        let (host, info) = (recorder.lane(), driver.info());
        let lanes = Arc::new(StreamLanes::new(recorder, driver.clone(), clock, device, start));
        let name = interned_name(&info.name);
        host.push(TraceEvent::Device(DeviceRecord { device, name, clock: file_clock, clock_kind: clock }));
        host.push(TraceEvent::Stream(StreamRecord {
            stream: TraceStream { device, stream: 0 },
            name: "main",
        }));
        let every = match taken.how {
            DeviceTimes::Events { every } => every.max(1),
            _ => 1,
        };
        let origin = origin.map(Mutex::new);
        let (turn, activity) = (AtomicU32::new(0), source.map(ActivityTimes::new));
        let room = if clock == RecordingClock::Virtual { MAX_SIMULATED } else { MAX_MEASURED };
        let measured = (0..MAX_STREAMS).map(|_| Mutex::new(MeasuredWork::new(room))).collect();
        let faults = Arc::new(FaultLog::new(lanes.clone(), host.clone()));
        let post_mortems = Arc::new(PostMortemNotes::new(lanes.clone(), host.clone()));
        let findings = FindingNotes::new(lanes.clone(), host.clone());
        let memory = MemoryNotes::begin(runtime, lanes.clone(), host.clone());
        let earlier = match origin.is_some() || activity.is_some() {
            true => EarlierWork::note(runtime, &lanes, &host, origin.is_some()),
            // Nothing is said about idle time.
            false => EarlierWork::default(),
        };
        Self {
            table: lanes.table().clone(),
            counts: lanes.counts(),
            is_virtual: clock == RecordingClock::Virtual,
            is_measured: origin.is_some() || activity.is_some(),
            is_checked: runtime.findings().is_some(),
            lanes,
            host,
            origin,
            every,
            turn,
            activity,
            taken,
            measured,
            faults,
            post_mortems,
            findings,
            written: WrittenWorks::default(),
            earlier,
            shares_file,
            memory,
            has_ended: AtomicBool::new(false),
        }
    }

    /// What writes down how the device is lost and brought back.
    pub(super) fn takeover_log(&self, runtime: &Inner) -> TakeoverLog {
        TakeoverLog::new(
            self.faults.clone(),
            self.post_mortems.clone(),
            runtime.recovery().map(RecoveryHook::worker),
        )
    }

    /// The device was lost while the recording began.
    pub(super) fn was_lost(&self, cause: &Cause) {
        self.faults.note(&cause.error().to_string(), Some(cause));
    }

    /// Whether other devices are recorded into the same file.
    pub(super) fn shares_file(&self) -> bool {
        self.shares_file
    }

    pub(super) fn lanes(&self) -> &Arc<StreamLanes> {
        &self.lanes
    }

    pub(super) fn recorder(&self) -> &ProgramRecorder {
        self.lanes.recorder()
    }

    /// The time of the recording.
    pub(super) fn now(&self) -> u64 {
        self.lanes.now()
    }

    /// Whether submissions are measured.
    #[inline(always)]
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// How the device's times are taken.
    pub(super) fn taken(&self) -> &TakenTimes {
        &self.taken
    }

    /// CUPTI's times, if they are taken.
    pub(super) fn activity(&self) -> Option<&ActivityTimes> {
        self.activity.as_ref()
    }

    /// Whether the next submission has events around it.
    pub(super) fn is_turn(&self, runtime: &Inner) -> bool {
        let Some(origin) = &self.origin else { return false };
        let is_turn = self.every == 1 || self.turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.every);
        if is_turn && runtime.recovery().is_some() {
            let mut origin = origin.lock().unwrap_or_else(PoisonError::into_inner);
            if origin.generation != runtime.state().generation() {
                // The event was made again in another worker, where nothing has passed it.
                let _ = origin.signal(runtime);
            }
        }
        is_turn
    }

    /// The ticks of now.
    #[inline(always)]
    pub(super) fn ticks(&self) -> u64 {
        if self.counts { processor_counter::read() } else { self.lanes.ticks() }
    }

    /// Work was submitted that is not measured.
    #[inline(always)]
    pub(super) fn submitted(&self, stamp: Stamp, label: WorkLabel, begin: u64) {
        let note = self.note(stamp, label, begin);
        let lane = match self.table.get(stamp.stream.index()).and_then(OnceLock::get) {
            Some(lane) => Some(&**lane),
            None => self.lanes.of(stamp.stream),
        };
        if let Some(lane) = lane {
            lane.submitted(&note);
        }
        if self.is_checked {
            self.written.add(stamp, &note);
        }
    }

    /// Work was submitted that waits for its times, or comes after work that does.
    pub(super) fn submitted_measured(
        &self,
        runtime: &Inner,
        stamp: Stamp,
        label: WorkLabel,
        begin: u64,
        waits_for: Option<TimeSource>,
    ) {
        let note = self.note(stamp, label, begin);
        if stamp.number.is_multiple_of(ASK_AFTER as u64) {
            self.take_activity();
            self.collect_earlier(runtime, true);
        }
        let Some(mut measured) = self.measured(stamp.stream) else { return };
        if let Some(oldest) = measured.add(Measured { note, waits_for }) {
            self.write_down(runtime, stamp.stream, oldest);
        }
        let asks = measured.len() % ASK_AFTER == 0;
        self.collect_stream(runtime, stamp.stream, &mut measured, asks);
    }

    /// What is noted of a submission. That it is a collective is noted before.
    #[inline(always)]
    fn note(&self, stamp: Stamp, label: WorkLabel, begin: u64) -> SubmissionNote {
        let (WorkLabel { kind, name, line, size, bytes }, begin) =
            if work_context::is_noted() { self.in_context(stamp, label, begin) } else { (label, begin) };
        SubmissionNote {
            number: stamp.number,
            kind,
            name,
            line,
            size,
            bytes,
            begin,
            end: self.ticks(),
            device: None,
        }
    }

    /// A label with what the call around it knows: its line is that of the program, and it may be a collective, which began before it was submitted.
    #[cold]
    #[inline(never)]
    fn in_context(&self, stamp: Stamp, label: WorkLabel, begin: u64) -> (WorkLabel, u64) {
        let label = WorkLabel { line: work_context::line().or(label.line), ..label };
        match work_context::collective() {
            None => (label, begin),
            Some(collective) => {
                self.note_collective(stamp, &collective);
                let label = WorkLabel { kind: SubmissionKind::Collective, bytes: collective.bytes, ..label };
                // It begins when the rank comes, and not when all others have come.
                (label, collective.came.map_or(begin, |came| came.ticks.min(begin)))
            }
        }
    }

    fn note_collective(&self, stamp: Stamp, label: &CollectiveLabel) {
        let CollectiveLabel { name, communicator, rank, ranks, bytes, .. } = *label;
        let (number, name) = (stamp.number, KnownName::of(name));
        if let Some(lane) = self.lanes.of(stamp.stream) {
            lane.collective(&CollectiveNote { number, name, communicator, rank, ranks, bytes });
        }
    }

    /// A thread waited.
    pub(super) fn waited(
        &self,
        cause: HostWaitCause,
        awaited: Option<Stamp>,
        line: &'static Location<'static>,
        thread: u32,
        span: TimeSpan,
    ) {
        let line = Some(TraceLine { file: line.file(), line: line.line() });
        let awaited = awaited.map(|stamp| self.lanes.stamp(stamp));
        let device = self.lanes.device();
        self.host.push(TraceEvent::HostWait(HostWaitRecord { device, thread, cause, awaited, line, span }));
    }

    /// A block was allocated behind a submission of its stream.
    pub(crate) fn allocated(&self, runtime: &Inner, (number, behind): (u64, Stamp), memory: &DeviceBlock) {
        let tag = memory.tag().name();
        self.memory.look(runtime, tag);
        self.lanes.note_block(number, KnownBlock { tag, behind });
        self.host.push(TraceEvent::Allocation(AllocationRecord {
            device: self.lanes.device(),
            block: short(number),
            address: memory.address().0,
            bytes: memory.bytes(),
            tag,
            line: work_line(),
            time_ns: self.now(),
        }));
    }

    /// The last handle of a block was dropped.
    pub(crate) fn freed(&self, runtime: &Inner, number: u64, memory: &DeviceBlock) {
        self.note_heap(runtime);
        self.lanes.forget_block(number);
        self.host.push(TraceEvent::Free(FreeRecord {
            device: self.lanes.device(),
            block: short(number),
            bytes: memory.bytes(),
            tag: memory.tag().name(),
            time_ns: self.now(),
        }));
    }

    /// Records what the heap, or the driver's pool, did since the last look.
    pub(super) fn note_heap(&self, runtime: &Inner) {
        self.memory.look(runtime, "");
    }

    /// An allocation was refused.
    pub(crate) fn refused(&self, runtime: &Inner, exhausted: &Exhausted, tag: AllocTag) {
        self.memory.refused(runtime, exhausted, tag.name());
    }

    /// An allocation was refused that is larger than any block can be.
    pub(crate) fn refused_size(&self, runtime: &Inner, bytes: u64, tag: AllocTag) {
        self.memory.refused_size(runtime, bytes, tag.name());
    }

    /// A call told the program of a fault. The loss of a device is recorded where it is noticed, and not again for every call.
    pub(super) fn failed(&self, runtime: &Inner, error: &Error) {
        let is_told = || {
            let state = runtime.state();
            // One that was brought back has none of these, and later calls still tell of its losses.
            let is_lost = matches!(state.phase(), Phase::Lost | Phase::Rebuilding | Phase::Failed);
            is_lost || !state.losses().is_empty()
        };
        if error.driver().is_some_and(kiln_driver::Error::is_sticky) && !is_told() {
            self.faults.note(&error.to_string(), None);
        }
        self.post_mortems.note_loss(runtime);
    }

    /// Notes what CUPTI told meanwhile. No lock of a stream's work is held.
    fn take_activity(&self) {
        let Some(activity) = &self.activity else { return };
        activity.take(
            || self.now(),
            |stream, number, span| {
                if let Some(mut measured) = self.measured(stream) {
                    measured.ran(number, span);
                }
            },
        );
    }

    /// Has CUPTI tell what it knows; at the end, all of it.
    pub(super) fn flush_activity(&self, is_end: bool) {
        if let Some(activity) = &self.activity {
            activity.flush(is_end);
        }
    }

    /// Reads the times of work that is known to be done.
    pub(super) fn collect(&self, runtime: &Inner) {
        self.take_activity();
        self.collect_earlier(runtime, false);
        for (index, measured) in self.measured.iter().enumerate() {
            let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
            if measured.len() > 0
                && let Ok(stream) = StreamKey::new(index)
            {
                self.collect_stream(runtime, stream, &mut measured, false);
            }
        }
    }

    /// Records when work from before the recording was done, as far as that is known by now.
    fn collect_earlier(&self, runtime: &Inner, asks: bool) {
        let Some(origin) = &self.origin else { return };
        self.earlier.collect(runtime, (&self.lanes, &self.host), asks, |event| {
            origin.lock().unwrap_or_else(PoisonError::into_inner).since(runtime, &self.lanes, event)
        });
    }

    /// Whether this is the first time that its end is asked for: that of the process comes before that of a runtime that another thread drops meanwhile.
    pub(super) fn ends_now(&self) -> bool {
        !self.has_ended.swap(true, Ordering::Relaxed)
    }

    /// Reads the times of all work, and gives the events back. What is not done has no time.
    pub(super) fn end(&self, runtime: &Inner) {
        self.flush_activity(true);
        self.post_mortems.note_loss(runtime);
        self.note_heap(runtime);
        self.note_findings(runtime, true);
        if let Some(log) = runtime.findings() {
            log.left_out().iter().for_each(|left_out| self.findings.note_more(left_out));
        }
        self.collect(runtime);
        self.collect_earlier(runtime, true);
        self.earlier.end(runtime);
        if let Some(dropped) =
            self.activity.as_ref().map(ActivityTimes::dropped).filter(|dropped| *dropped > 0)
        {
            tracing::warn!(target: "kiln", dropped, "CUPTI had no room for the times of some work");
        }
        for (index, measured) in self.measured.iter().enumerate() {
            let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(left) = measured.take_oldest() {
                if let Ok(stream) = StreamKey::new(index) {
                    self.write_down(runtime, stream, left);
                }
            }
        }
        if let Some(origin) = &self.origin {
            origin.lock().unwrap_or_else(PoisonError::into_inner).give_back(runtime);
        }
    }

    fn measured(&self, stream: StreamKey) -> Option<MutexGuard<'_, MeasuredWork>> {
        Some(self.measured.get(stream.index())?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the times of a stream's work that is known to be done; where `asks`, the device is asked about the oldest.
    fn collect_stream(&self, runtime: &Inner, stream: StreamKey, measured: &mut MeasuredWork, asks: bool) {
        let driver = runtime.driver();
        let host = runtime.tracker().host();
        let is_known = |work: &Measured| host.covers(Stamp { stream, number: work.note.number });
        let is_done = |events: EventPair| {
            driver.wait(WaitTarget::Event(events.end), Timeout::Poll).is_ok_and(kiln_driver::Waited::is_done)
        };
        while let Some(oldest) = measured.oldest() {
            let is_ready = match oldest.waits_for {
                None => true,
                Some(TimeSource::Events { events, .. }) => is_known(oldest) || asks && is_done(events),
                Some(TimeSource::Activity) => measured.is_told(oldest.note.number, || is_known(oldest)),
            };
            let Some(mut done) = (if is_ready { measured.take_oldest() } else { None }) else { break };
            if let Some((origin, events)) = self.origin.as_ref().zip(done.events()) {
                let origin = *origin.lock().unwrap_or_else(PoisonError::into_inner);
                let between = origin.span(runtime, &self.lanes, events);
                // The clock of a simulated machine stands still but for calls and work, so that this is exact. On a GPU a moment between the events is not
                // known, and nor is it of a call that returns once its work is done.
                let earliest = if self.is_virtual { done.earliest() } else { 0 };
                done.note.device = between.map(|ran| match earliest < ran.end_ns {
                    true => TimeSpan::new(ran.begin_ns.max(earliest), ran.end_ns),
                    false => ran,
                });
            }
            self.write_down(runtime, stream, done);
        }
    }

    /// Records work with what is known of it.
    fn write_down(&self, runtime: &Inner, stream: StreamKey, work: Measured) {
        if let Some(lane) = self.lanes.of(stream) {
            lane.submitted(&work.note);
        }
        if self.is_checked {
            self.written.add(Stamp { stream, number: work.note.number }, &work.note);
        }
        if let Some(events) = work.events() {
            runtime.timers().put_back(events);
        }
    }
}
