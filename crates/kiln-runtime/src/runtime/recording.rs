//! Records what a runtime does, where that was asked for.
//!
//! Off, it costs a launch one comparison. On, two readings of the processor's counter and a note of one cache line in the lane of the
//! stream, without memory from the heap and without a lock that another thread has; a thread of [`kiln_trace::ProgramRecorder`] writes the file. Where the device's times are taken, events stand around
//! the work. They are read once the work is known to be done, by a thread that submits or waits, so that a simulated device sees the
//! same calls in every run.

mod activity_times;
mod device_origin;
mod device_recording;
mod device_times;
mod earlier_work;
mod finding_notes;
mod measured_work;
mod memory_notes;
mod noted_needs;
mod post_mortem_notes;
mod process_recording;
mod processor_counter;
mod stream_lanes;
#[cfg(feature = "mutations")]
pub(crate) mod switch_reads;
mod takeover_log;
mod tick_clock;
mod waiting;
pub(crate) mod work_context;
mod work_label;
mod written_works;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kiln_cuda::nvtx;
use kiln_driver::{Command, DeviceKind, Driver, StreamId};
use kiln_order::{Stamp, StreamCount, StreamState, Use};
use kiln_trace::{ProgramRecorder, RecordingClock, RecordingTotals};

use super::DeviceRuntime;
use super::inner::Inner;
use super::process_end::{EndStep, when_process_ends};
use crate::device_state::Phase;
use crate::error::{RecordingError, Result, Stale};

pub(crate) use activity_times::ActivitySource;
pub(crate) use device_recording::DeviceRecording;
pub use device_times::{DeviceTimes, TakenTimes, UnknownTimes};
pub(super) use process_recording::close as close_process_recording;
#[cfg(unix)]
pub(crate) use process_recording::repeat_command;
pub(crate) use work_label::WorkLabel;

use device_times::{Measuring, TIMES_VARIABLE};
use measured_work::TimeSource;
use process_recording::RecordedBy;
use tick_clock::ClockStart;

/// How long a flush waits for the disk.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);
/// How long the beginning of a recording waits for the disk.
const START_LIMIT: Duration = Duration::from_secs(1);

/// Where the recording of a device stands in its file.
#[derive(Clone, Copy, Debug)]
struct Place {
    device: u32,
    /// A moment of the device's clock and of the file's times on it.
    start: ClockStart,
    /// Whether other devices are recorded into it, too.
    shares_file: bool,
    /// Which of the clocks in the file is that of the device.
    clock: u32,
}

impl DeviceRuntime {
    /// Records what this runtime does from here on, until it ends: submissions with kernel and line, waits with the block they are about,
    /// allocations by tag, what the heap takes and refuses, faults, findings of the checks, takeovers, collectives, the program's waits. `kiln trace` and `kiln explain` read the
    /// file. A file that is there is overwritten, unless it is being written.
    ///
    /// It does not wait for work that is queued. What was submitted before is not in the recording; that a stream still had such work, and until when, is.
    ///
    /// The program never waits for the disk: what that has no room for is dropped, and the recording says how much. When work ran on a
    /// simulated device is recorded in its virtual time; on a GPU use [`trace_timed`](Self::trace_timed) for that.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let path = std::env::temp_dir().join(format!("doc-{}.kiln", std::process::id()));
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// gpu.trace(&path)?;
    /// assert_eq!(gpu.upload(&[1_u32, 2, 3])?.download()?, [1, 2, 3]);
    /// drop(gpu);
    /// assert!(std::fs::metadata(&path)?.len() > 100);
    /// # std::fs::remove_file(&path)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AlreadyRecorded`](RecordingError::AlreadyRecorded), with the file, for a runtime that is recorded: `KILN_TRACE` has every runtime of the process recorded,
    /// and its file stays the only one. A file that another recording writes, in this process or another; an empty name, a pipe, a device such as
    /// `/dev/null`, a file that cannot be written. [`ShuttingDown`](Stale::ShuttingDown) for a runtime that was shut down.
    pub fn trace(&self, path: impl AsRef<Path>) -> Result<()> {
        self.inner().begin_trace(path.as_ref(), DeviceTimes::HostOnly)
    }

    /// As [`trace`](Self::trace), and when work ran is measured with two events around each submission, also on a GPU. Each costs the host
    /// about as much as the event of a wait, and in a worker process a question and an answer besides. A simulated device in a worker process is not
    /// measured.
    ///
    /// # Errors
    /// As for [`trace`](Self::trace); what the driver says to the first event.
    pub fn trace_timed(&self, path: impl AsRef<Path>) -> Result<()> {
        self.inner().begin_trace(path.as_ref(), DeviceTimes::Events { every: 1 })
    }

    /// As [`trace`](Self::trace), with a choice how it is known when work ran.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kiln::DeviceRuntime;
    /// use kiln::telemetry::DeviceTimes;
    ///
    /// let path = std::env::temp_dir().join(format!("doc-times-{}.kiln", std::process::id()));
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// gpu.trace_with(&path, DeviceTimes::Events { every: 16 })?;
    /// let taken = gpu.trace_times().ok_or("not recorded")?;
    /// assert_eq!(taken.how, DeviceTimes::Events { every: 1 }); // a simulated device has all its times
    /// # drop(gpu);
    /// # std::fs::remove_file(&path)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`trace_timed`](Self::trace_timed).
    pub fn trace_with(&self, path: impl AsRef<Path>, times: DeviceTimes) -> Result<()> {
        self.inner().begin_trace(path.as_ref(), times)
    }

    /// How it is known when recorded work ran, and why not as it was asked for; none if nothing is recorded.
    pub fn trace_times(&self) -> Option<TakenTimes> {
        self.inner().recording().map(|recording| recording.taken().clone())
    }

    /// The file that this runtime is recorded to; none if it is not.
    pub fn trace_path(&self) -> Option<PathBuf> {
        self.inner().recording()?.recorder().path().map(Path::to_owned)
    }

    /// Writes what was recorded so far to the file, and says how much there is, and why some of it is not in the file
    /// ([`RecordingTotals::failure`]); none if nothing is recorded. It waits for the disk, but no longer than a few seconds.
    pub fn flush_trace(&self) -> Option<RecordingTotals> {
        let recording = self.inner().recording()?;
        recording.flush_activity(false);
        recording.note_findings(self.inner(), true);
        recording.collect(self.inner());
        recording.note_heap(self.inner());
        recording.recorder().flush(FLUSH_LIMIT);
        Some(recording.recorder().totals())
    }
}

impl Inner {
    fn begin_trace(self: &Arc<Self>, path: &Path, times: DeviceTimes) -> Result<()> {
        self.check_unrecorded()?;
        if times == (DeviceTimes::Events { every: 0 }) {
            return Err(RecordingError::NoSubmissions.into());
        }
        if matches!(self.state().phase(), Phase::ShuttingDown | Phase::Stopped) {
            return Err(Stale::ShuttingDown.into());
        }
        // Before the file, which may be a recording that is still wanted: a device that is lost cannot be recorded.
        let measuring = Measuring::choose(self, times).begin(self)?;
        let first = process_recording::first_events(self.recording_clock(), RecordedBy::Program);
        let recorder = ProgramRecorder::create(path, &first).map_err(|error| {
            measuring.origin.iter().for_each(|origin| origin.give_back(self));
            RecordingError::file(path, &error)
        })?;
        let start = ClockStart { clock: self.driver().clock().now(), time_ns: 0 };
        let place = Place { device: 0, start, shares_file: false, clock: 0 };
        self.record_into(Arc::new(recorder), place, (times, measuring))
    }

    /// Refuses a second recording, and says where the first one is.
    fn check_unrecorded(&self) -> Result<()> {
        let Some(recording) = self.recording() else { return Ok(()) };
        let path = recording.recorder().path().unwrap_or(Path::new("")).to_owned();
        Err(RecordingError::AlreadyRecorded { path }.into())
    }

    /// Records into the file that the environment names, if it does.
    pub(super) fn trace_as_environment_says(self: &Arc<Self>) -> Result<()> {
        if !process_recording::is_asked_for() {
            return Ok(());
        }
        // Before the file, which may be a recording that is still wanted.
        let times = times_of_environment()?;
        match process_recording::device_of_process(self.recording_clock(), self.driver().clock())? {
            Some((recorder, place)) => {
                self.record_into(recorder, place, (times, Measuring::choose(self, times).begin(self)?))
            }
            None => Ok(()),
        }
    }

    /// The clock of its device. One in a worker process has that of the wall.
    fn recording_clock(&self) -> RecordingClock {
        let is_virtual = self.driver().info().kind == DeviceKind::Simulated && self.recovery().is_none();
        if is_virtual { RecordingClock::Virtual } else { RecordingClock::Wall }
    }

    fn record_into(
        &self,
        recorder: Arc<ProgramRecorder>,
        place: Place,
        (times, measuring): (DeviceTimes, Measuring),
    ) -> Result<()> {
        let recording = DeviceRecording::begin(self, recorder, place, measuring);
        recording.taken().tell_of(times, recording.shares_file());
        let (lanes, takeovers) = (recording.lanes().clone(), recording.takeover_log(self));
        if !self.set_recording(recording) {
            return self.check_unrecorded();
        }
        when_process_ends(EndStep::EndRecording, self.key());
        // What is recorded, of what, and how it is run again is on the disk before the program goes on, which may crash at once.
        if let Some(recording) = self.recording() {
            recording.recorder().flush(START_LIMIT);
        }
        self.findings().into_iter().for_each(|log| log.begin_recording());
        self.tracker().observe_waits(lanes);
        if let (Some(recording), Some(cause)) = (self.recording(), self.state().fault()) {
            recording.was_lost(&cause);
        }
        self.state().observe(Box::new(takeovers));
        Ok(())
    }

    /// As [`submit`](Self::submit), recorded.
    #[inline(never)]
    pub(super) fn submit_recorded(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        label: impl FnOnce() -> Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        #[cfg(feature = "metrics")]
        if let Some(metered) = self.metered() {
            let began = std::time::Instant::now();
            let submitted = self.submit_in_range(lane, uses, label(), work);
            metered.submissions.record(began.elapsed());
            return submitted;
        }
        if nvtx::is_attached() {
            return self.submit_in_range(lane, uses, label(), work);
        }
        self.submit_noted(lane, uses, label, work)
    }

    /// The same in a range that tools show.
    #[cold]
    #[inline(never)]
    fn submit_in_range(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        label: Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        // The number it will have, unless another thread submits to the stream right now.
        let _range = label.map(|label| nvtx::numbered_range(label.name.text(), lane.planned() + 1));
        self.submit_noted(lane, uses, || label, work)
    }

    #[inline(always)]
    fn submit_noted(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        label: impl FnOnce() -> Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        let Some(recording) = self.recording() else { return self.submit_unrecorded(lane, uses, work) };
        if recording.is_measured() {
            return self.submit_measured(recording, lane, uses, label(), work);
        }
        let begin = recording.ticks();
        let submitted = self.submit_unrecorded(lane, uses, work);
        match &submitted {
            Ok(stamp) => {
                if let Some(label) = label() {
                    recording.submitted(*stamp, label, begin);
                }
            }
            Err(error) => recording.failed(self, error),
        }
        submitted
    }

    /// The same with the device's times.
    #[cold]
    #[inline(never)]
    fn submit_measured(
        &self,
        recording: &DeviceRecording,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        label: Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        if let (Some(activity), Some(label)) = (recording.activity(), label) {
            let begin = recording.ticks();
            // The stream is entered then, so what was planned last is this.
            let submitted = self.submit_unrecorded(lane, uses, |driver, stream| {
                activity.around((lane.key, stream), lane.planned(), || work(driver, stream))
            });
            if let Ok(stamp) = &submitted {
                recording.submitted_measured(self, *stamp, label, begin, Some(TimeSource::Activity));
            }
            return submitted.inspect_err(|error| recording.failed(self, error));
        }
        let begin = recording.ticks();
        let events = match label {
            Some(_) if recording.is_turn(self) => self.timers().take(&**self.driver()).ok(),
            _ => None,
        };
        let mut is_measured = events.is_some();
        let mut queued = 0;
        let measured = |driver: &dyn Driver, stream| {
            let mut mark = |event| {
                match driver.submit(stream, &Command::Signal(event)) {
                    Ok(_) => lane.counters().add(StreamCount::Signals, 1),
                    Err(error) if error.is_sticky() => return Err(error),
                    // Only its time stays unknown.
                    Err(_) => is_measured = false,
                }
                Ok(())
            };
            events.map_or(Ok(()), |events| mark(events.start))?;
            work(driver, stream)?;
            queued = recording.ticks();
            events.map_or(Ok(()), |events| mark(events.end))
        };
        let submitted = self.submit_unrecorded(lane, uses, measured);
        let events = match events {
            Some(events) if submitted.is_err() || !is_measured => {
                self.timers().put_back(events);
                None
            }
            events => events,
        };
        if let (Ok(stamp), Some(label)) = (&submitted, label) {
            let source = events.map(|events| TimeSource::Events { events, queued });
            recording.submitted_measured(self, *stamp, label, begin, source);
        }
        submitted.inspect_err(|error| recording.failed(self, error))
    }

    /// The end of the runtime: what was measured is read, and everything written.
    pub(super) fn end_recording(&self) {
        let Some(recording) = self.recording().filter(|recording| recording.ends_now()) else { return };
        recording.end(self);
        let (recorder, now) = (recording.recorder(), recording.now());
        let is_last = !recording.shares_file() || process_recording::device_ended();
        let is_written = match recording.shares_file() {
            false => recorder.finish(now, FLUSH_LIMIT),
            true if is_last => recorder.mark_end(now, FLUSH_LIMIT),
            true => recorder.flush(FLUSH_LIMIT),
        };
        if !is_written {
            tracing::warn!(target: "kiln", "the disk did not take the recording in time");
        }
        let RecordingTotals { dropped, failure, .. } = recorder.totals();
        let file = recorder.path().unwrap_or(Path::new("")).display();
        let missing = match (dropped, failure) {
            (0, None) => return,
            (0, Some(failure)) => format!("the recording {file} has no end: {failure}"),
            (_, Some(failure)) => {
                format!("{dropped} events are missing from the recording {file}: {failure}")
            }
            (_, None) => {
                let why = "they came faster than they could be written";
                tracing::warn!(target: "kiln", dropped, "events are missing from the recording {file}: {why}");
                return;
            }
        };
        match recording.shares_file() && is_last {
            true => process_recording::tell(&missing),
            false => tracing::warn!(target: "kiln", "{missing}"),
        }
    }
}

/// How the environment has the device's times taken.
fn times_of_environment() -> Result<DeviceTimes> {
    match std::env::var(TIMES_VARIABLE) {
        Ok(text) if !text.is_empty() => {
            Ok(text.parse().map_err(|error: UnknownTimes| RecordingError::Times(error.to_string()))?)
        }
        _ => Ok(DeviceTimes::HostOnly),
    }
}
