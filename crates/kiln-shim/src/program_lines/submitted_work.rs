//! From which place of the program the work of a device was queued.

use std::collections::VecDeque;

use kiln_driver::{StreamId, Submission};
use kiln_sync::{Bias, BiasedLock};

use super::ProgramPlace;

/// Submissions of a stream whose places are known.
const SUBMISSIONS: usize = 65_536;
/// Streams that are gone whose work is still known.
const GONE_STREAMS: usize = 64;
/// How often other threads may look before the list belongs to all alike: most programs queue work from one thread.
const VISITS: u32 = 256;

/// The work of one device.
pub(super) struct SubmittedWork(BiasedLock<Streams>);

#[derive(Default)]
struct Streams {
    /// By the slots of the streams, which are small numbers.
    slots: Vec<Option<StreamWork>>,
    gone: VecDeque<StreamWork>,
}

/// The last submissions of a stream, the oldest first.
struct StreamWork {
    stream: StreamId,
    submitted: VecDeque<(Submission, &'static ProgramPlace)>,
}

impl SubmittedWork {
    pub(super) fn new() -> Self {
        Self(BiasedLock::with_bias(Streams::default(), Bias::Returns(VISITS)))
    }

    /// Work was queued.
    pub(super) fn note(&self, stream: StreamId, number: Submission, place: &'static ProgramPlace) {
        let mut streams = self.0.lock();
        let Some(work) = streams.of(stream) else { return };
        if work.submitted.len() >= SUBMISSIONS {
            work.submitted.pop_front();
        }
        work.submitted.push_back((number, place));
    }

    /// From where a submission was queued, of a stream by its name.
    pub(super) fn place_of(&self, stream: &str, number: u64) -> Option<&'static ProgramPlace> {
        let streams = self.0.lock();
        let mut all = streams.slots.iter().flatten().chain(&streams.gone);
        let work = &all.find(|work| work.stream.to_string() == stream)?.submitted;
        let at = work.binary_search_by_key(&number, |(submission, _)| submission.0).ok()?;
        work.get(at).map(|(_, place)| *place)
    }
}

impl Streams {
    #[inline]
    fn of(&mut self, stream: StreamId) -> Option<&mut StreamWork> {
        let slot = stream.slot() as usize;
        let is_known = matches!(self.slots.get(slot), Some(Some(work)) if work.stream == stream);
        if !is_known {
            self.add(slot, stream);
        }
        self.slots.get_mut(slot)?.as_mut()
    }

    #[cold]
    fn add(&mut self, slot: usize, stream: StreamId) {
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        let Some(room) = self.slots.get_mut(slot) else { return };
        let work = StreamWork { stream, submitted: VecDeque::new() };
        if let Some(before) = room.replace(work) {
            if self.gone.len() >= GONE_STREAMS {
                self.gone.pop_front();
            }
            self.gone.push_back(before);
        }
    }
}
