//! The recording that the environment asks for: one file for all devices of a process.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kiln_driver::Clock;
use kiln_trace::{
    ProgramRecorder, RecordingClock, RepeatCommand, StartRecord, TraceEvent, interned_name,
    with_process_number,
};

use super::tick_clock::ClockStart;
use super::{FLUSH_LIMIT, Place};
use crate::error::{RecordingError, Result, TRACE_VARIABLE};

/// The variable with what is the same for all processes of one run, so that recordings of several runs are told apart.
const RUN_VARIABLE: &str = "KILN_TRACE_RUN";

/// The recording of this process, once the first runtime was made.
static RECORDING: Mutex<Option<ProcessRecording>> = Mutex::new(None);

/// The process that is not recorded, because there was no room for the beginning of its file; 0 for none.
static WITHOUT_ROOM: AtomicU32 = AtomicU32::new(0);

struct ProcessRecording {
    /// Whose it is: a process that was forked has a copy of that of its parent, and not the thread that writes it.
    process: u32,
    recorder: Arc<ProgramRecorder>,
    began: Instant,
    devices: AtomicU32,
    /// Devices whose runtimes have not ended.
    recorded: AtomicU32,
    /// The clocks of its devices.
    clocks: Vec<KnownClock>,
}

/// A clock of the recording.
struct KnownClock {
    /// Tells it from others: that of the host is 0.
    number: u64,
    /// What it said when the first device with it was recorded: the zero of its times in the file. Devices of one simulated machine have one clock, so that
    /// a device which is made later begins at the machine's time.
    zero: Duration,
}

impl ProcessRecording {
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Which of the recording's clocks that of a device is, and where the device begins on it. Both clocks are read at one moment: what is done later,
    /// such as loading a library that takes times, is part of the recording.
    fn clock_of(&mut self, kind: RecordingClock, clock: &dyn Clock) -> (u32, ClockStart) {
        let now = clock.now();
        let number = if kind == RecordingClock::Virtual { clock.number() } else { 0 };
        let known = self.clocks.iter().position(|known| known.number == number);
        let place = known.unwrap_or_else(|| {
            self.clocks.push(KnownClock { number, zero: now });
            self.clocks.len() - 1
        });
        let start = match kind {
            RecordingClock::Virtual => {
                ClockStart { clock: self.clocks.get(place).map_or(now, |known| known.zero), time_ns: 0 }
            }
            // Each driver counts from another moment.
            RecordingClock::Wall => {
                let elapsed = self.began.elapsed().as_nanos();
                ClockStart { clock: now, time_ns: u64::try_from(elapsed).unwrap_or_default() }
            }
        };
        (u32::try_from(place).unwrap_or(u32::MAX), start)
    }
}

/// Whether the environment asks for a recording.
pub(super) fn is_asked_for() -> bool {
    std::env::var_os(TRACE_VARIABLE).is_some_and(|value| !value.is_empty())
}

/// The recorder of this process and the place of the next device in it; none if the environment asks for none.
///
/// Where there is no room for the file, none either: that is said, and the program goes on. A place that is wrong is an error: who named it wants
/// to name another one.
pub(super) fn device_of_process(
    kind: RecordingClock,
    clock: &dyn Clock,
) -> Result<Option<(Arc<ProgramRecorder>, Place)>> {
    let Some(value) = std::env::var_os(TRACE_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    if !recording.as_ref().is_some_and(ProcessRecording::is_own) {
        if WITHOUT_ROOM.load(Ordering::Relaxed) == std::process::id() {
            return Ok(None);
        }
        // Programs with several processes give each its file.
        let path = with_process_number(Path::new(&value), std::process::id());
        let recorder = match create(path, &first_events(kind, RecordedBy::Environment)) {
            Err((path, error)) if is_want_of_room(&error) => {
                WITHOUT_ROOM.store(std::process::id(), Ordering::Relaxed);
                let why = RecordingError::file(&path, &error);
                tell(&format!("this program goes on without a recording: {why}"));
                return Ok(None);
            }
            made => made.map_err(|(path, error)| RecordingError::file(&path, &error))?,
        };
        let inherited = recording.replace(ProcessRecording {
            process: std::process::id(),
            recorder: Arc::new(recorder),
            began: Instant::now(),
            devices: AtomicU32::new(0),
            recorded: AtomicU32::new(0),
            clocks: Vec::new(),
        });
        // Its parent ends it.
        std::mem::forget(inherited);
    }
    let Some(recording) = &mut *recording else { return Ok(None) };
    let device = recording.devices.fetch_add(1, Ordering::Relaxed);
    recording.recorded.fetch_add(1, Ordering::Relaxed);
    let (clock, start) = recording.clock_of(kind, clock);
    Ok(Some((recording.recorder.clone(), Place { device, start, shares_file: true, clock })))
}

/// A device of this process is recorded no more; whether it was the last.
pub(super) fn device_ended() -> bool {
    let recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = recording.as_ref().filter(|recording| recording.is_own());
    own.is_none_or(|recording| recording.recorded.fetch_sub(1, Ordering::Relaxed) == 1)
}

/// Closes the file of this process, which has the mark of the end then. A runtime that is made later is not recorded.
pub(in crate::runtime) fn close() {
    let recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = recording.as_ref().filter(|recording| recording.is_own());
    let recorder = own.map(|recording| recording.recorder.clone());
    drop(recording);
    if let Some(recorder) = recorder {
        recorder.close(FLUSH_LIMIT);
    }
}

/// Begins the recording of this process: in the file that is named, or beside it, where another process is recorded into that. An error comes with the file
/// that it is about.
fn create(
    path: PathBuf,
    first: &[TraceEvent<'static>],
) -> std::result::Result<ProgramRecorder, (PathBuf, io::Error)> {
    match ProgramRecorder::create(&path, first) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let own = with_process(&path);
            tracing::warn!(
                target: "kiln",
                "{} is being written by another process; this one is recorded to {}; %p in {TRACE_VARIABLE} gives each process its file",
                path.display(),
                own.display()
            );
            ProgramRecorder::create(&own, first).map_err(|error| (own, error))
        }
        made => made.map_err(|error| (path, error)),
    }
}

/// Whether a disk, a quota or a limit has no room for a file. Such a file can be had another time.
fn is_want_of_room(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
    kinds.contains(&error.kind())
}

/// Says something about the recording that the environment asks for: who set the variable may have no log.
pub(super) fn tell(what: &str) {
    tracing::warn!(target: "kiln", "{what}");
    // Where the standard error cannot be written either, the log alone has it.
    let _ = writeln!(io::stderr(), "kiln: {TRACE_VARIABLE}: {what}");
}

/// The same place with the number of this process before the ending: `run.kiln` becomes `run.4711.kiln`.
fn with_process(path: &Path) -> PathBuf {
    let number = std::process::id().to_string();
    let ending = match path.extension() {
        Some(ending) => [number.as_ref(), ending].join(".".as_ref()),
        None => number.into(),
    };
    path.with_extension(ending)
}

/// Who asks for a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordedBy {
    /// Who started the program.
    Environment,
    /// The program itself.
    Program,
}

/// What a recording begins with.
pub(super) fn first_events(clock: RecordingClock, by: RecordedBy) -> Vec<TraceEvent<'static>> {
    let repeat = match by {
        RecordedBy::Environment => repeat_command(),
        RecordedBy::Program => repeat_command().recording_itself(),
    };
    std::iter::once(start(clock)).chain(repeat.events()).collect()
}

/// The command that runs this program again.
pub(crate) fn repeat_command() -> RepeatCommand {
    RepeatCommand::of(std::env::args_os(), |name| std::env::var_os(name))
}

fn start(clock: RecordingClock) -> TraceEvent<'static> {
    let program = std::env::args_os().next().map(PathBuf::from);
    let program = program.and_then(|path| Some(interned_name(&path.file_name()?.to_string_lossy())));
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_nanos());
    let unix_ns = match clock {
        RecordingClock::Virtual => 0,
        RecordingClock::Wall => unix.ok().and_then(|ns| u64::try_from(ns).ok()).unwrap_or_default(),
    };
    let run = std::env::var_os(RUN_VARIABLE).map(|run| interned_name(&run.to_string_lossy()));
    TraceEvent::Start(StartRecord {
        program: program.unwrap_or_default(),
        process: std::process::id(),
        clock,
        unix_ns,
        run: run.unwrap_or_default(),
    })
}
