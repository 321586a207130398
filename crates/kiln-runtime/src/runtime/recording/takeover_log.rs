//! Writes down how a device was lost and brought back.

use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_trace::{
    FaultRecord, NOT_BROUGHT_BACK, RecordingLane, TakeoverPhase, TakeoverRecord, TimeSpan, TraceEvent,
    TraceLine, WorkerRecord, interned_name, text_in_one_line,
};

use super::post_mortem_notes::PostMortemNotes;
use super::stream_lanes::StreamLanes;
use crate::device_state::{Cause, Phase, StateObserver, Status};
use crate::ids::Generation;
use crate::runtime::WorkerIdentity;

/// Faults that are recorded; their texts are kept for ever.
const MAX_FAULTS: u32 = 16;

/// Letters of each.
const MAX_LETTERS: usize = 600;

/// The faults of one device, a limited number.
pub(super) struct FaultLog {
    lanes: Arc<StreamLanes>,
    host: Arc<RecordingLane>,
    faults: AtomicU32,
}

/// The steps from a loss to a device that takes work again, and the worker processes that have it.
pub(super) struct TakeoverLog {
    faults: Arc<FaultLog>,
    post_mortems: Arc<PostMortemNotes>,
    /// None for a device of this process.
    worker: Option<Box<dyn WorkerIdentity>>,
    /// The step that is under way, and when it began.
    open: Mutex<Option<(TakeoverPhase, u64)>>,
}

impl FaultLog {
    pub(super) fn new(lanes: Arc<StreamLanes>, host: Arc<RecordingLane>) -> Self {
        Self { lanes, host, faults: AtomicU32::new(0) }
    }

    /// Records a fault in one line: all that is said of it, also the kernel and its place, as far as there is room. With the work that met it
    /// if that is known.
    pub(super) fn note(&self, text: &str, cause: Option<&Cause>) {
        if self.faults.fetch_add(1, Ordering::Relaxed) >= MAX_FAULTS {
            return;
        }
        let at = cause.and_then(Cause::launched_at);
        let said: String = text_in_one_line(text).chars().take(MAX_LETTERS).collect();
        self.host.push(TraceEvent::Fault(FaultRecord {
            device: self.lanes.device(),
            message: interned_name(&said),
            stamp: cause.and_then(Cause::ticket).map(|stamp| self.lanes.stamp(stamp)),
            line: at.map(|at| TraceLine { file: at.file(), line: at.line() }),
            time_ns: self.lanes.now(),
        }));
    }
}

impl TakeoverLog {
    /// One that notes the worker in use at once.
    pub(super) fn new(
        faults: Arc<FaultLog>,
        post_mortems: Arc<PostMortemNotes>,
        worker: Option<Box<dyn WorkerIdentity>>,
    ) -> Self {
        let log = Self { faults, post_mortems, worker, open: Mutex::new(None) };
        log.note_worker(log.faults.lanes.now());
        log
    }

    /// A worker has the device from here on.
    fn note_worker(&self, time_ns: u64) {
        let Some(worker) = &self.worker else { return };
        let FaultLog { lanes, host, .. } = &*self.faults;
        let (device, name) = (lanes.device(), interned_name(worker.name()));
        host.push(TraceEvent::Worker(WorkerRecord { device, process: worker.process(), name, time_ns }));
    }

    fn open(&self) -> MutexGuard<'_, Option<(TakeoverPhase, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, phase: TakeoverPhase, begin_ns: u64, end_ns: u64) {
        let FaultLog { lanes, host, .. } = &*self.faults;
        let span = TimeSpan::new(begin_ns, end_ns);
        host.push(TraceEvent::Takeover(TakeoverRecord { device: lanes.device(), phase, span }));
    }
}

impl StateObserver for TakeoverLog {
    fn changed(&self, status: &Status) {
        let now = self.faults.lanes.now();
        let next = match status.phase() {
            Phase::Lost => Some((TakeoverPhase::Lost, now)),
            Phase::Rebuilding => Some((TakeoverPhase::Rebuilding, now)),
            _ => None,
        };
        let before = std::mem::replace(&mut *self.open(), next);
        if let Some((phase, begin)) = before {
            self.push(phase, begin, now);
        }
        match (status.phase(), status.state.cause()) {
            (Phase::Ready, _) if before.is_some() => self.note_worker(now),
            (Phase::Lost, Some(cause)) => self.faults.note(&cause.error().to_string(), Some(cause)),
            (Phase::Failed, Some(cause)) => {
                if let Some(why) = cause.why_given_up() {
                    self.faults.note(&format!("{NOT_BROUGHT_BACK}: {why}"), None);
                }
            }
            _ => {}
        }
    }

    fn post_mortem(&self, ended: Generation, text: &dyn Display) {
        self.post_mortems.note(ended, text);
    }

    fn resubmitted(&self, took: Duration) {
        let now = self.faults.lanes.now();
        let begin = now.saturating_sub(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        let before = self.open().replace((TakeoverPhase::Rebuilding, now));
        if let Some((phase, began)) = before {
            let begin = begin.max(began);
            self.push(phase, began, begin);
            self.push(TakeoverPhase::Resubmitting, begin, now);
        }
    }
}
