//! The recording that the environment asks for: one file for all devices of a process.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use kiln_driver::DeviceKind;
use kiln_trace::{ProgramRecorder, RecordingClock, StartRecord, TraceEvent, interned_name};

use crate::error::{RecordingError, Result, TRACE_VARIABLE};

/// The recording of this process, once the first runtime was made.
static RECORDING: Mutex<Option<ProcessRecording>> = Mutex::new(None);

struct ProcessRecording {
    recorder: Arc<ProgramRecorder>,
    began: Instant,
    devices: AtomicU32,
}

/// The recorder of this process, the number of the next device, and how long it has been recording; none if the environment asks for none.
pub(super) fn device_of_process(kind: DeviceKind) -> Result<Option<(Arc<ProgramRecorder>, u32, u64)>> {
    let Some(value) = std::env::var_os(TRACE_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    if recording.is_none() {
        // Programs with several processes give each its file.
        let path = PathBuf::from(value.to_string_lossy().replace("%p", &std::process::id().to_string()));
        let recorder = ProgramRecorder::create(&path, &[start(kind)])
            .map_err(|error| RecordingError::file(&path, &error))?;
        *recording = Some(ProcessRecording {
            recorder: Arc::new(recorder),
            began: Instant::now(),
            devices: AtomicU32::new(0),
        });
    }
    let Some(recording) = &*recording else { return Ok(None) };
    let elapsed = match kind {
        DeviceKind::Simulated => 0,
        DeviceKind::Cuda => u64::try_from(recording.began.elapsed().as_nanos()).unwrap_or_default(),
    };
    let device = recording.devices.fetch_add(1, Ordering::Relaxed);
    Ok(Some((recording.recorder.clone(), device, elapsed)))
}

/// What a recording begins with.
pub(super) fn start(kind: DeviceKind) -> TraceEvent<'static> {
    let program = std::env::args_os().next().map(PathBuf::from);
    let program = program.and_then(|path| Some(interned_name(&path.file_name()?.to_string_lossy())));
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_nanos());
    let (clock, unix_ns) = match kind {
        DeviceKind::Simulated => (RecordingClock::Virtual, 0),
        DeviceKind::Cuda => {
            (RecordingClock::Wall, unix.ok().and_then(|ns| u64::try_from(ns).ok()).unwrap_or_default())
        }
    };
    TraceEvent::Start(StartRecord {
        program: program.unwrap_or_default(),
        process: std::process::id(),
        clock,
        unix_ns,
    })
}
