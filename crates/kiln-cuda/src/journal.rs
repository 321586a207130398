//! What was submitted to a stream, and how far it is.
//!
//! Two things hang on one lock per stream. The number of a submission must say the order in which the driver got
//! it, or an event signalled by one thread would seem to cover a launch that another thread queued after it; so
//! the driver is called and the number is given while the *turn* is held. And the last few submissions are
//! remembered, because a CUDA fault does not say which kernel caused it.
//!
//! Invariant: a number is visible in `submitted` only after the driver has the work, so whatever a query made later
//! finds done includes everything up to that number.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{FunctionId, Progress, StreamId, Submission};
use kiln_sync::{BiasedGuard, BiasedLock};

/// How many submissions are remembered by what they were.
const REMEMBERED: usize = 64;

/// The submissions of one stream.
// In this order and place: the number stands beside the latch that is taken to change it.
#[repr(C, align(64))]
pub(crate) struct Journal {
    submitted: AtomicU64,
    recent: BiasedLock<[Entry; REMEMBERED]>,
    completed: AtomicU64,
    stream: OnceLock<StreamId>,
}

/// What a submission was, in a form that costs nothing to keep.
// Placed so that none lies across two cache lines.
#[repr(align(16))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    Copy,
    Fill,
    Launch(FunctionId),
    Signal,
    Wait,
    Graph,
}

/// The right to queue the next submission of a stream.
pub(crate) struct Turn<'a> {
    journal: &'a Journal,
    recent: BiasedGuard<'a, [Entry; REMEMBERED]>,
}

/// The submission that may have caused a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suspect {
    pub(crate) stream: StreamId,
    pub(crate) submission: Submission,
    /// What it was, unless that is forgotten.
    pub(crate) entry: Option<Entry>,
    /// How many later submissions of the stream may have caused it as well.
    pub(crate) others: u64,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self {
            stream: OnceLock::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            recent: BiasedLock::new([Entry::Wait; REMEMBERED]),
        }
    }

    /// Says which stream this is, once that has a name.
    pub(crate) fn name(&self, stream: StreamId) {
        let _ = self.stream.set(stream);
    }

    /// Waits for the turn to queue something.
    #[inline]
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { journal: self, recent: self.recent.lock() }
    }

    /// The newest submission the driver has.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Everything up to here is known to be done.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Notes that everything up to here is done.
    pub(crate) fn complete(&self, up_to: u64) {
        self.completed.fetch_max(up_to, Ordering::AcqRel);
    }

    /// How far the stream is, as far as is known.
    pub(crate) fn progress(&self) -> Progress {
        let completed = self.completed();
        Progress { submitted: Submission(self.submitted()), completed: Submission(completed) }
    }

    /// What may have caused a fault: the oldest kernel not known to be done, or else the oldest submission. Nothing,
    /// if all is done or another thread is just queueing something.
    pub(crate) fn suspect(&self) -> Option<Suspect> {
        let stream = *self.stream.get()?;
        let recent = self.recent.try_lock()?;
        let (submitted, completed) = (self.submitted(), self.completed());
        if completed >= submitted {
            return None;
        }
        let known = (completed + 1).max((submitted + 1).saturating_sub(REMEMBERED as u64));
        let entry = |number: u64| recent[place(number)];
        let runs_code = |number: &u64| matches!(entry(*number), Entry::Launch(_) | Entry::Graph);
        let (number, entry) = if known > completed + 1 {
            (completed + 1, None)
        } else {
            let number = (known..=submitted).find(runs_code).unwrap_or(completed + 1);
            (number, Some(entry(number)))
        };
        let others = (known.max(number + 1)..=submitted).filter(runs_code).count() as u64;
        // The first of the forgotten ones is the suspect itself.
        let forgotten = (known - (completed + 1)).saturating_sub(1);
        Some(Suspect { stream, submission: Submission(number), entry, others: others + forgotten })
    }
}

impl Turn<'_> {
    /// The newest submission, which stays the newest while the turn is held.
    pub(crate) fn submitted(&self) -> u64 {
        self.journal.submitted()
    }

    /// Numbers what the driver has just taken.
    #[inline]
    pub(crate) fn queued(mut self, entry: Entry) -> Submission {
        let number = self.journal.submitted.load(Ordering::Relaxed) + 1;
        self.recent[place(number)] = entry;
        self.journal.submitted.store(number, Ordering::Release);
        Submission(number)
    }
}

impl Entry {
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

impl fmt::Debug for Journal {
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

    fn named() -> (Journal, FunctionId) {
        let key = DeviceKey::fresh();
        let journal = Journal::new();
        journal.name(Slots::<kind::Stream, ()>::new(key).insert(()).unwrap());
        (journal, Slots::<kind::Function, ()>::new(key).insert(()).unwrap())
    }

    #[test]
    fn the_oldest_unfinished_kernel_is_the_suspect() {
        let (journal, function) = named();
        for entry in
            [Entry::Launch(function), Entry::Copy, Entry::Launch(function), Entry::Signal, Entry::Graph]
        {
            journal.turn().queued(entry);
        }
        let suspect = journal.suspect().unwrap();
        assert_eq!((suspect.submission, suspect.others), (Submission(1), 2));
        journal.complete(1);
        let suspect = journal.suspect().unwrap();
        assert_eq!((suspect.submission, suspect.entry), (Submission(3), Some(Entry::Launch(function))));
        assert_eq!(suspect.others, 1);
        journal.complete(5);
        assert_eq!(journal.suspect(), None);
    }

    #[test]
    fn without_a_kernel_the_oldest_unfinished_submission_is() {
        let (journal, _) = named();
        journal.turn().queued(Entry::Fill);
        journal.turn().queued(Entry::Signal);
        let suspect = journal.suspect().unwrap();
        assert_eq!(
            (suspect.submission, suspect.entry, suspect.others),
            (Submission(1), Some(Entry::Fill), 0)
        );
    }

    #[test]
    fn what_is_forgotten_is_counted_but_not_named() {
        let (journal, function) = named();
        for _ in 0..REMEMBERED + 10 {
            journal.turn().queued(Entry::Launch(function));
        }
        let suspect = journal.suspect().unwrap();
        assert_eq!((suspect.submission, suspect.entry), (Submission(1), None));
        assert_eq!(suspect.others, (REMEMBERED + 10 - 1) as u64);
    }

    #[test]
    fn completion_only_grows() {
        let (journal, _) = named();
        journal.turn().queued(Entry::Copy);
        journal.complete(1);
        journal.complete(0);
        assert_eq!(journal.progress(), Progress { submitted: Submission(1), completed: Submission(1) });
    }
}
