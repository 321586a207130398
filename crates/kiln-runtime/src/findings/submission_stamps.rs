//! Which of the driver's submissions belong to which stamps, as far as findings may still name them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use kiln_driver::{StreamId, Submission};
use kiln_order::{Stamp, StreamClock, StreamKey};

use super::named_call::NamedCall;

/// Submissions of one stream that are remembered; older ones are attributed to the oldest that is.
const MAX_SUBMISSIONS: usize = 1 << 16;

/// The submissions of all streams.
#[derive(Default)]
pub(super) struct SubmissionStamps {
    streams: HashMap<StreamId, OneStream>,
}

struct OneStream {
    key: StreamKey,
    /// Both numbers rise.
    numbers: VecDeque<Noted>,
}

struct Noted {
    /// The driver's number.
    submission: u64,
    /// The order's.
    number: u64,
    /// What it is ordered after.
    clock: StreamClock,
    /// The call of a library that it belongs to.
    call: Option<Arc<NamedCall>>,
}

impl SubmissionStamps {
    pub(super) fn note(
        &mut self,
        stream: StreamId,
        Submission(submission): Submission,
        stamp: Stamp,
        clock: StreamClock,
        call: Option<Arc<NamedCall>>,
    ) {
        let one = self
            .streams
            .entry(stream)
            .or_insert_with(|| OneStream { key: stamp.stream, numbers: VecDeque::new() });
        one.numbers.push_back(Noted { submission, number: stamp.number, clock, call });
        if one.numbers.len() > MAX_SUBMISSIONS {
            one.numbers.pop_front();
        }
    }

    /// The stamp of a submission: its own, or the next older one that is known. None for one that is newer than all that are known: the
    /// thread that submits it has not noted it yet.
    pub(super) fn find(&self, stream: StreamId, Submission(submission): Submission) -> Option<Stamp> {
        let one = self.streams.get(&stream)?;
        let after = one.numbers.partition_point(|noted| noted.submission <= submission);
        if one.numbers.back().is_none_or(|newest| newest.submission < submission) {
            return None;
        }
        let noted = one.numbers.get(after.saturating_sub(1))?;
        Some(Stamp { stream: one.key, number: noted.number })
    }

    /// The call of a library that a submission belongs to, if it is one and is still known.
    pub(super) fn call_of(
        &self,
        stream: StreamId,
        Submission(submission): Submission,
    ) -> Option<Arc<NamedCall>> {
        let one = self.streams.get(&stream)?;
        let at = one.numbers.binary_search_by_key(&submission, |noted| noted.submission).ok()?;
        one.numbers.get(at)?.call.clone()
    }

    /// The first submission of each other stream that is ordered after a stamp.
    pub(super) fn followers(&self, stamp: Stamp) -> Vec<Stamp> {
        let others = self.streams.values().filter(|one| one.key != stamp.stream);
        let first = |one: &OneStream| {
            let noted = one.numbers.iter().find(|noted| noted.clock.covers(stamp))?;
            Some(Stamp { stream: one.key, number: noted.number })
        };
        others.filter_map(first).collect()
    }

    /// Forgets what is known to be done and was asked about, but for the newest of each stream.
    pub(super) fn forget(&mut self, is_done: impl Fn(Stamp) -> bool) {
        for one in self.streams.values_mut() {
            while let (Some(noted), true) = (one.numbers.front(), one.numbers.len() > 1)
                && is_done(Stamp { stream: one.key, number: noted.number })
            {
                one.numbers.pop_front();
            }
        }
    }

    pub(super) fn forget_stream(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }
}
