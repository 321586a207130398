//! Work whose times on the device are not known yet.

use std::collections::VecDeque;

use kiln_trace::{SubmissionNote, TimeSpan};

use crate::runtime::timing::EventPair;

/// Submissions of one stream that wait for their times; of more, the oldest is recorded without its time on the device.
pub(super) const MAX_MEASURED: usize = 1024;
/// The same of a simulated device, which is often far behind the host. Room for them is made as they come. Not more: what waits is lost when
/// the program is killed.
pub(super) const MAX_SIMULATED: usize = 1 << 16;
/// The same where CUPTI tells the times, which it does for some hundred at once.
const MAX_TRACED: usize = 8192;

/// The measured work of one stream, by number.
pub(super) struct MeasuredWork {
    /// How many may wait for events.
    room: usize,
    open: VecDeque<Measured>,
    /// The latest whose time CUPTI told.
    latest_told: u64,
}

/// One submission.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) note: SubmissionNote,
    /// None if it is not measured. It waits with the others, so that all are recorded in their order.
    pub(super) waits_for: Option<TimeSource>,
}

/// Where the time of work comes from.
#[derive(Clone, Copy)]
pub(super) enum TimeSource {
    Events {
        events: EventPair,
        /// When the work between them had been queued, in ticks. The first event comes before that, and a stream without work passes it at once.
        queued: u64,
    },
    Activity,
}

impl Measured {
    /// The events around it.
    pub(super) fn events(&self) -> Option<EventPair> {
        match self.waits_for {
            Some(TimeSource::Events { events, .. }) => Some(events),
            _ => None,
        }
    }

    /// When it can have begun at the earliest, in virtual time: once it was queued.
    pub(super) fn earliest(&self) -> u64 {
        match self.waits_for {
            Some(TimeSource::Events { queued, .. }) => queued,
            _ => 0,
        }
    }
}

impl MeasuredWork {
    pub(super) fn new(room: usize) -> Self {
        Self { room, open: VecDeque::new(), latest_told: 0 }
    }

    /// Adds work, and returns the oldest if there was no room for one more. On a GPU, room is made with the first, and never grows.
    pub(super) fn add(&mut self, measured: Measured) -> Option<Measured> {
        let room = match measured.waits_for {
            Some(TimeSource::Activity) => MAX_TRACED,
            _ => self.room,
        };
        if room <= MAX_TRACED && self.open.capacity() < room {
            self.open.reserve_exact(room - self.open.len());
        }
        let oldest = if self.open.len() < room { None } else { self.open.pop_front() };
        // Threads that submit to one stream at the same time come here in any order.
        let before =
            self.open.iter().rev().take_while(|known| known.note.number > measured.note.number).count();
        self.open.insert(self.open.len() - before, measured);
        oldest
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A part of the work with a number ran.
    pub(super) fn ran(&mut self, number: u64, span: TimeSpan) {
        self.latest_told = self.latest_told.max(number);
        let Ok(at) = self.open.binary_search_by_key(&number, |work| work.note.number) else { return };
        if let Some(work) = self.open.get_mut(at) {
            let known = work.note.device.unwrap_or(span);
            let (begin, end) = (known.begin_ns.min(span.begin_ns), known.end_ns.max(span.end_ns));
            work.note.device = Some(TimeSpan::new(begin, end));
        }
    }

    /// Whether CUPTI has told all of a submission, because it told of a later one of the stream; `is_over` if that is known to be done.
    pub(super) fn is_told(&self, number: u64, is_over: impl FnOnce() -> bool) -> bool {
        number < self.latest_told || number == self.latest_told && is_over()
    }

    /// The work with a number, as long as it waits.
    pub(super) fn find(&self, number: u64) -> Option<&Measured> {
        let at = self.open.binary_search_by_key(&number, |work| work.note.number).ok()?;
        self.open.get(at)
    }

    /// The oldest.
    pub(super) fn oldest(&self) -> Option<&Measured> {
        self.open.front()
    }

    /// Takes the oldest out.
    pub(super) fn take_oldest(&mut self) -> Option<Measured> {
        self.open.pop_front()
    }
}
