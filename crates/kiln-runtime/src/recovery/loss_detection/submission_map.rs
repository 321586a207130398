//! A map from driver submission to order stamp.
//!
//! The driver of an isolated device says how many submissions of a stream its worker had completed; blocks are stamped with numbers of the
//! order. This layer sees each command on its way and writes down which is which. Waits and signals write nothing and are left out. Where
//! work may be done again, the command itself is kept, behind a mark on its stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::Layer;
use kiln_driver::{Command, Driver, Error, FunctionId, StreamId, Submission};
use kiln_order::{DependencyTracker, Stamp, StreamState};

use super::unfinished_list::{UnfinishedList, Work};
use crate::resubmission::SubmissionLog;

/// The submissions of an isolated device.
#[derive(Default)]
pub(crate) struct SubmissionMap {
    tracker: OnceLock<Weak<DependencyTracker>>,
    streams: RwLock<HashMap<StreamId, Arc<Mutex<UnfinishedList>>>>,
    kernels: Mutex<HashMap<FunctionId, Arc<str>>>,
    /// Where work may be done again.
    log: Option<Arc<SubmissionLog>>,
}

impl SubmissionMap {
    pub(crate) fn new(log: Option<Arc<SubmissionLog>>) -> Self {
        Self { log, ..Self::default() }
    }

    /// Tells it whose submissions they are.
    pub(crate) fn knows(&self, tracker: &Arc<DependencyTracker>) {
        // There is one tracker for each runtime, so this is the first call.
        let _ = self.tracker.set(Arc::downgrade(tracker));
    }

    /// What is written down about a stream.
    pub(crate) fn unfinished<R>(&self, lane: &StreamState, read: impl FnOnce(&mut UnfinishedList) -> R) -> R {
        let known = self.streams.read().unwrap_or_else(PoisonError::into_inner).get(&lane.stream).cloned();
        let unfinished = known.unwrap_or_else(|| {
            let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
            streams.entry(lane.stream).or_default().clone()
        });
        read(&mut unfinished.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The name of a kernel that was looked up.
    pub(crate) fn kernel(&self, function: FunctionId) -> Option<Arc<str>> {
        self.kernels().get(&function).cloned()
    }

    fn note(&self, stream: StreamId, command: &Command<'_>, Submission(submission): Submission) {
        let work = match command {
            Command::Signal(_) | Command::Wait(_) => return,
            Command::Launch(launch) => Work::Launch(launch.function),
            other => Work::Other(other.name()),
        };
        let Some(tracker) = self.tracker.get().and_then(Weak::upgrade) else { return };
        let Some(lane) = tracker.state_of(stream) else { return };
        // The stream is entered by the thread that queues this, so what was planned last is what it belongs to.
        let number = lane.planned();
        self.unfinished(&lane, |unfinished| {
            let mut known = 0;
            if tracker.host().covers(Stamp { stream: lane.key, number: number.saturating_sub(1) }) {
                known = number.saturating_sub(1);
            }
            unfinished.forget_up_to(known);
            unfinished.note(number, submission, work);
        });
        if let Some(log) = &self.log {
            log.note(&lane, number, command);
        }
    }

    /// Forgets what is kept of work that a stream has completed, as far as its worker said.
    pub(crate) fn forget_completed(&self, lane: &StreamState, Submission(completed): Submission) {
        if let Some(log) = &self.log {
            let done = self.unfinished(lane, |unfinished| unfinished.completed(completed, lane.submitted()));
            log.forget_up_to(lane.key, done);
        }
    }

    fn kernels(&self) -> MutexGuard<'_, HashMap<FunctionId, Arc<str>>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for SubmissionMap {
    /// A mark in front of work that may have to be told from work that had not started.
    fn before(&self, driver: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        let (Some(log), Call::Submit { stream, command }) = (&self.log, call) else { return Ok(()) };
        if matches!(command, Command::Signal(_) | Command::Wait(_)) {
            return Ok(());
        }
        let lane = self.tracker.get().and_then(Weak::upgrade).and_then(|tracker| tracker.state_of(*stream));
        lane.map_or(Ok(()), |lane| log.mark(driver, *stream, &lane))
    }

    fn after(&self, call: &Call<'_>, answer: Result<Answer<'_>, &Error>) {
        if let (Some(log), Ok(answer)) = (&self.log, &answer) {
            log.learn(call, answer);
        }
        match (call, answer) {
            (Call::Submit { stream, command }, Ok(Answer::Submission(submission))) => {
                self.note(*stream, command, submission);
            }
            (Call::Function { name, .. }, Ok(Answer::Function(function))) => {
                self.kernels().insert(function.id, Arc::from(*name));
            }
            _ => {}
        }
    }
}
