//! Work with events around it whose times are not read yet.

use std::collections::VecDeque;

use kiln_trace::SubmissionRecord;

use crate::runtime::timing::EventPair;

/// Submissions of one stream that wait for their times; of more, the oldest is recorded without its time on the device.
const MAX_MEASURED: usize = 1024;

/// The measured work of one stream, by number.
pub(super) struct MeasuredWork {
    open: VecDeque<Measured>,
}

/// One submission.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) number: u64,
    pub(super) record: SubmissionRecord<'static>,
    /// None if it could not be measured. It waits with the others, so that all are recorded in their order.
    pub(super) events: Option<EventPair>,
}

impl MeasuredWork {
    pub(super) fn new() -> Self {
        Self { open: VecDeque::new() }
    }

    /// Adds work, and returns the oldest if there was no room for one more. Room is made with the first, and never grows.
    pub(super) fn add(&mut self, measured: Measured) -> Option<Measured> {
        if self.open.capacity() == 0 {
            self.open.reserve_exact(MAX_MEASURED);
        }
        let oldest = if self.open.len() < MAX_MEASURED { None } else { self.open.pop_front() };
        // Threads that submit to one stream at the same time come here in any order.
        let before = self.open.iter().rev().take_while(|known| known.number > measured.number).count();
        self.open.insert(self.open.len() - before, measured);
        oldest
    }

    /// How many wait to be read.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// The oldest, if that holds for it.
    pub(super) fn take(&mut self, is_done: impl FnOnce(&Measured) -> bool) -> Option<Measured> {
        self.open.front().filter(|oldest| is_done(oldest))?;
        self.open.pop_front()
    }
}
