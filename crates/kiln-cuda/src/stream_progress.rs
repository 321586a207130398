//! What was submitted to a stream, and how far it is.
//!
//! One lock per stream protects two things. Submissions must be numbered in the order in which the driver gets them, or an event signalled by one thread would
//! seem to cover a launch that another thread queued after it; so the driver is called and the number is assigned while the *turn* is held. And
//! the last submissions are stored, because a CUDA fault does not say which kernel caused it.
//!
//! Invariant: a number is visible in `submitted` only after the driver has the work, so a query that finds the stream idle later includes everything up to
//! that number.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{FunctionId, Progress, StreamId, Submission};
use kiln_sync::{BiasedGuard, BiasedLock};

/// How many submissions are stored with their kind.
const REMEMBERED: usize = 64;

/// The submissions of one stream.
// In this order and alignment: the number is beside the lock that is taken to change it.
#[repr(C, align(64))]
pub(crate) struct SubmissionLog {
    submitted: AtomicU64,
    recent: BiasedLock<[SubmissionKind; REMEMBERED]>,
    completed: AtomicU64,
    stream: OnceLock<StreamId>,
}

/// The kind of a submission.
// Aligned so that none crosses a cache line.
#[repr(align(16))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SubmissionKind {
    Copy,
    Fill,
    Launch(FunctionId),
    Signal,
    Wait,
    Graph,
}

/// The right to queue the next submission of a stream.
pub(crate) struct Turn<'a> {
    log: &'a SubmissionLog,
    recent: BiasedGuard<'a, [SubmissionKind; REMEMBERED]>,
}

/// The submission that may have caused a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suspect {
    pub(crate) stream: StreamId,
    pub(crate) submission: Submission,
    /// Its kind, if it is still stored.
    pub(crate) kind: Option<SubmissionKind>,
    /// How many later submissions of the stream may have caused it as well.
    pub(crate) others: u64,
}

impl SubmissionLog {
    pub(crate) fn new() -> Self {
        Self {
            stream: OnceLock::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            recent: BiasedLock::new([SubmissionKind::Wait; REMEMBERED]),
        }
    }

    /// Sets the handle of the stream.
    pub(crate) fn name(&self, stream: StreamId) {
        let _ = self.stream.set(stream);
    }

    /// Waits for the turn to queue something.
    #[inline]
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { log: self, recent: self.recent.lock() }
    }

    /// The newest submission the driver has.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Everything up to here is known to be done.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Records that everything up to here is done.
    pub(crate) fn complete(&self, up_to: u64) {
        self.completed.fetch_max(up_to, Ordering::AcqRel);
    }

    /// How far the stream is, as far as is known.
    pub(crate) fn progress(&self) -> Progress {
        let completed = self.completed();
        Progress { submitted: Submission(self.submitted()), completed: Submission(completed) }
    }

    /// What may have caused a fault: the oldest kernel that is not known to be done, or else the oldest submission. `None` if everything is done, or another
    /// thread is queueing work.
    pub(crate) fn suspect(&self) -> Option<Suspect> {
        let stream = *self.stream.get()?;
        let recent = self.recent.try_lock()?;
        let (submitted, completed) = (self.submitted(), self.completed());
        if completed >= submitted {
            return None;
        }
        let known = (completed + 1).max((submitted + 1).saturating_sub(REMEMBERED as u64));
        let kind_of = |number: u64| recent[place(number)];
        let runs_code =
            |number: &u64| matches!(kind_of(*number), SubmissionKind::Launch(_) | SubmissionKind::Graph);
        let (number, kind) = if known > completed + 1 {
            (completed + 1, None)
        } else {
            let number = (known..=submitted).find(runs_code).unwrap_or(completed + 1);
            (number, Some(kind_of(number)))
        };
        let others = (known.max(number + 1)..=submitted).filter(runs_code).count() as u64;
        // The first of those that are no longer stored is the suspect itself.
        let forgotten = (known - (completed + 1)).saturating_sub(1);
        Some(Suspect { stream, submission: Submission(number), kind, others: others + forgotten })
    }
}

impl Turn<'_> {
    /// The newest submission, which stays the newest while the turn is held.
    pub(crate) fn submitted(&self) -> u64 {
        self.log.submitted()
    }

    /// Numbers what the driver has just accepted.
    #[inline]
    pub(crate) fn queued(mut self, kind: SubmissionKind) -> Submission {
        let number = self.log.submitted.load(Ordering::Relaxed) + 1;
        self.recent[place(number)] = kind;
        self.log.submitted.store(number, Ordering::Release);
        Submission(number)
    }
}

impl SubmissionKind {
    /// One word for messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Launch(_) => "launch",
            Self::Signal => "signal",
            Self::Wait => "wait",
            Self::Graph => "graph",
        }
    }
}

impl fmt::Debug for SubmissionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} submissions done", self.completed(), self.submitted())
    }
}

fn place(number: u64) -> usize {
    (number % REMEMBERED as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_driver::{DeviceKey, Slots, kind};

    fn named() -> (SubmissionLog, FunctionId) {
        let key = DeviceKey::fresh();
        let log = SubmissionLog::new();
        log.name(Slots::<kind::Stream, ()>::new(key).insert(()).unwrap());
        (log, Slots::<kind::Function, ()>::new(key).insert(()).unwrap())
    }

    #[test]
    fn the_oldest_unfinished_kernel_is_the_suspect() {
        let (log, function) = named();
        for entry in [
            SubmissionKind::Launch(function),
            SubmissionKind::Copy,
            SubmissionKind::Launch(function),
            SubmissionKind::Signal,
            SubmissionKind::Graph,
        ] {
            log.turn().queued(entry);
        }
        let suspect = log.suspect().unwrap();
        assert_eq!((suspect.submission, suspect.others), (Submission(1), 2));
        log.complete(1);
        let suspect = log.suspect().unwrap();
        assert_eq!(
            (suspect.submission, suspect.kind),
            (Submission(3), Some(SubmissionKind::Launch(function)))
        );
        assert_eq!(suspect.others, 1);
        log.complete(5);
        assert_eq!(log.suspect(), None);
    }

    #[test]
    fn without_a_kernel_the_oldest_unfinished_submission_is() {
        let (log, _) = named();
        log.turn().queued(SubmissionKind::Fill);
        log.turn().queued(SubmissionKind::Signal);
        let suspect = log.suspect().unwrap();
        assert_eq!(
            (suspect.submission, suspect.kind, suspect.others),
            (Submission(1), Some(SubmissionKind::Fill), 0)
        );
    }

    #[test]
    fn what_is_no_longer_stored_is_counted_but_not_named() {
        let (log, function) = named();
        for _ in 0..REMEMBERED + 10 {
            log.turn().queued(SubmissionKind::Launch(function));
        }
        let suspect = log.suspect().unwrap();
        assert_eq!((suspect.submission, suspect.kind), (Submission(1), None));
        assert_eq!(suspect.others, (REMEMBERED + 10 - 1) as u64);
    }

    #[test]
    fn completion_only_grows() {
        let (log, _) = named();
        log.turn().queued(SubmissionKind::Copy);
        log.complete(1);
        log.complete(0);
        assert_eq!(log.progress(), Progress { submitted: Submission(1), completed: Submission(1) });
    }
}
