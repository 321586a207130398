//! The recording of this process, for `kiln exec --trace`.
//!
//! A layer around each driver notes what is submitted and waited for; memory is noted where the program gets it, and findings where they are kept. On a simulated
//! device work is written when it is known when it ran, in virtual time; on others with the time at which the host submitted it.

mod device_notes;
mod pending_work;
mod place;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use kiln_driver::layer::Layered;
use kiln_driver::{DeviceFinding, Driver, Site};
use kiln_sim::TimelineSpan;
use kiln_trace::{
    AllocationRecord, DeviceRecord, FaultRecord, FindingRecord, FreeRecord, ProgramRecorder, RecordingClock,
    RecordingLane, RepeatCommand, StartRecord, TimeSpan, TraceEvent, TraceLine, finding_message,
    interned_name,
};

use crate::{program_lines, records, run_settings};
use device_notes::{DeviceNotes, NotingLayer};

/// Events after which the file is waited for: a lane has room for twice as many.
const EVENTS_PER_FLUSH: u64 = 4096;
/// How long that is, at most.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

static RECORDING: OnceLock<ProgramRecording> = OnceLock::new();

/// The recording of a process.
pub(crate) struct ProgramRecording {
    /// Whose it is: a process that was forked has a copy of it, and not the thread that writes it.
    process: u32,
    recorder: ProgramRecorder,
    lane: Arc<RecordingLane>,
    pushed: AtomicU64,
    time: RecordingTime,
    devices: Vec<Arc<DeviceNotes>>,
}

/// What the times of a recording are of.
enum RecordingTime {
    /// The clock of the host, since a moment.
    Wall(Instant),
    /// That of a simulated machine, since a time of it.
    Virtual(Arc<dyn Driver>, Duration),
}

/// A block of memory that the program was given or gave back.
pub(crate) struct NotedBlock {
    pub(crate) device: u32,
    pub(crate) number: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// What kind of memory it is.
    pub(crate) tag: &'static str,
}

/// The recording of this process, if there is one.
pub(crate) fn recording() -> Option<&'static ProgramRecording> {
    RECORDING.get().filter(|recording| recording.process == std::process::id())
}

/// Begins the recording, if the run asks for one, and puts a layer around each device. `is_simulated`: they are a simulated machine in this process.
pub(crate) fn begin(devices: &mut [Arc<dyn Driver>], is_simulated: bool) {
    let Some(file) = run_settings::trace_file() else { return };
    let Some(first) = devices.first() else { return };
    let time = if is_simulated {
        RecordingTime::Virtual(first.clone(), first.clock().now())
    } else {
        RecordingTime::Wall(Instant::now())
    };
    let clock = if is_simulated { RecordingClock::Virtual } else { RecordingClock::Wall };
    let start = std::iter::once(start(clock));
    let events: Vec<TraceEvent<'static>> = start.chain(repeat_command().events()).collect();
    let recorder = match place::create(&file, &events) {
        Ok(recorder) => recorder,
        Err(error) => {
            let process = std::process::id();
            return records::note(&format!(
                "process {process} is not recorded to {}: {error}; give --trace another file",
                file.display()
            ));
        }
    };
    let lane = recorder.lane();
    let mut notes = Vec::new();
    for (driver, device) in devices.iter_mut().zip(0..) {
        let name = interned_name(&driver.info().name);
        lane.push(TraceEvent::Device(DeviceRecord { device, name, clock: 0, clock_kind: clock }));
        let of_device = Arc::new(DeviceNotes::new(device, is_simulated));
        notes.push(of_device.clone());
        *driver = Arc::new(Layered::new(driver.clone(), NotingLayer(of_device)));
    }
    let (process, pushed) = (std::process::id(), AtomicU64::new(0));
    // The state of the process is made once.
    let _ = RECORDING.set(ProgramRecording { process, recorder, lane, pushed, time, devices: notes });
    records::listen(|finding, place| {
        if let Some(recording) = recording() {
            recording.found(finding, place);
        }
    });
}

fn start(clock: RecordingClock) -> TraceEvent<'static> {
    let program = std::env::args_os().next().map(PathBuf::from);
    let program = program.and_then(|path| Some(interned_name(&path.file_name()?.to_string_lossy())));
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_nanos());
    let unix_ns = match clock {
        RecordingClock::Virtual => 0,
        RecordingClock::Wall => unix.ok().and_then(|ns| u64::try_from(ns).ok()).unwrap_or_default(),
    };
    let run = std::env::var_os("KILN_TRACE_RUN").map(|run| interned_name(&run.to_string_lossy()));
    TraceEvent::Start(StartRecord {
        program: program.unwrap_or_default(),
        process: std::process::id(),
        clock,
        unix_ns,
        run: run.unwrap_or_default(),
    })
}

/// The command that runs the program again: the one that `kiln exec` left in the folder of the run.
fn repeat_command() -> RepeatCommand {
    let words = run_settings::command().unwrap_or_default();
    RepeatCommand::of(words, |name| std::env::var_os(name)).recording_itself()
}

impl ProgramRecording {
    /// The time of the recording.
    pub(crate) fn now(&self) -> u64 {
        let elapsed = match &self.time {
            RecordingTime::Wall(began) => began.elapsed(),
            RecordingTime::Virtual(driver, zero) => driver.clock().now().saturating_sub(*zero),
        };
        nanoseconds(elapsed)
    }

    /// Adds an event.
    fn push(&self, event: TraceEvent<'static>) {
        self.lane.push(event);
        // Work that ran comes all at once.
        if self.pushed.fetch_add(1, Ordering::Relaxed) % EVENTS_PER_FLUSH == EVENTS_PER_FLUSH - 1 {
            self.recorder.flush(FLUSH_LIMIT);
        }
    }

    /// Work that ran.
    pub(crate) fn ran(&self, spans: Vec<TimelineSpan>) {
        let RecordingTime::Virtual(_, zero) = &self.time else { return };
        let time = |time: Duration| nanoseconds(time.saturating_sub(*zero));
        for span in spans {
            if let Some(device) = self.devices.get(span.device as usize) {
                let ran = TimeSpan::new(time(span.start), time(span.end));
                device.ran(self, (span.stream, span.submission), ran);
            }
        }
    }

    /// The program was given memory.
    pub(crate) fn allocated(&self, block: &NotedBlock) {
        let NotedBlock { device, number, address, bytes, tag } = *block;
        let time_ns = self.now();
        let record =
            AllocationRecord { device, block: number, address, bytes, tag, line: line_here(), time_ns };
        self.push(TraceEvent::Allocation(record));
    }

    /// It gave memory back.
    pub(crate) fn freed(&self, block: &NotedBlock) {
        let NotedBlock { device, number, bytes, tag, .. } = *block;
        let time_ns = self.now();
        self.push(TraceEvent::Free(FreeRecord { device, block: number, bytes, tag, time_ns }));
    }

    /// A mistake was found, on a device if that is known, in the work at a place.
    fn found(&self, finding: &DeviceFinding, (device, site): (u32, Option<&Site>)) {
        let notes = self.devices.get(device as usize);
        let stamp = site.zip(notes).and_then(|(site, notes)| notes.stamp(site));
        let (message, time_ns) = (interned_name(&finding_message(&finding.text)), self.now());
        let submitted = site.and_then(|site| program_lines::line_of(device, site));
        let submitted = submitted.map(|(file, line)| TraceLine { file, line });
        if finding.fatal {
            let line = submitted;
            return self.push(TraceEvent::Fault(FaultRecord { device, message, stamp, line, time_ns }));
        }
        let line = finding.line.as_ref();
        self.push(TraceEvent::Finding(FindingRecord {
            device,
            rule: finding.rule.words(),
            kernel: finding.kernel.as_deref().map(interned_name).unwrap_or_default(),
            line: line.map(|line| TraceLine { file: interned_name(&line.file), line: line.line }),
            message,
            stamp,
            submitted,
            time_ns,
            more: 0,
        }));
    }

    /// The process ends: writes the rest and the mark of the end.
    pub(crate) fn end(&self) {
        self.devices.iter().for_each(|device| device.end(self));
        if !self.recorder.finish(self.now(), FLUSH_LIMIT) {
            records::note("the recording of this process could not be written to its end in time");
        }
        if let Some(failure) = self.recorder.totals().failure {
            records::note(&format!("the recording of this process is not whole: {failure}"));
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The line of the program from which the thread called, where it is noted.
fn line_here() -> Option<TraceLine<'static>> {
    program_lines::line_here().map(|(file, line)| TraceLine { file, line })
}
