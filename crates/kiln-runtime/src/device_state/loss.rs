//! A loss of the device: which submissions were done, and which were pending.

use std::sync::Arc;

use kiln_order::{Stamp, StreamClock, StreamKey};

use super::cause::Cause;
use super::submission_set::SubmissionSet;
use crate::ids::Generation;

/// The end of a generation: what was known to be done then, and what had been asked for.
///
/// A block is lost with it if one of its last writes lies in between. That is a question about numbers, so no list is needed of all
/// blocks: each is judged when its handle is next used.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) generation: Generation,
    pub(crate) cause: Arc<Cause>,
    /// Everything here was known to be done.
    pub(crate) known: StreamClock,
    /// Everything here had been asked for.
    pub(crate) planned: StreamClock,
    /// Work in between that was done again in the next generation.
    pub(crate) replayed: Arc<SubmissionSet>,
    /// Whether it is known what was done again; until then no waiter is told that work failed.
    pub(crate) is_decided: bool,
    /// The rebuilt device keeps nothing.
    pub(crate) everything: bool,
    /// The device was not lost: work on it was ended before it was done. Its context is the same, and a block can be overwritten.
    pub(crate) is_interruption: bool,
}

impl Loss {
    /// Whether work was unfinished when the device was lost, and stayed so.
    pub(crate) fn caught(&self, stamp: Stamp) -> bool {
        self.was_unfinished(stamp) && !self.replayed.contains(stamp)
    }

    /// Whether work was unfinished when the device was lost.
    pub(crate) fn was_unfinished(&self, stamp: Stamp) -> bool {
        self.planned.covers(stamp) && !self.known.covers(stamp)
    }

    /// The first work of a stream that was unfinished when the device was lost.
    pub(crate) fn first_unfinished(&self, stream: StreamKey) -> Option<Stamp> {
        let first = Stamp { stream, number: self.known.at(stream) + 1 };
        self.planned.covers(first).then_some(first)
    }

    /// Whether work of a stream stayed unfinished.
    pub(crate) fn caught_any_of(&self, stream: StreamKey) -> bool {
        let unfinished = self.planned.at(stream).saturating_sub(self.known.at(stream));
        unfinished > self.replayed.count(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_driver::{Code, Error, Fault};

    fn stamp(number: u64) -> Stamp {
        Stamp { stream: StreamKey::default(), number }
    }

    #[test]
    fn what_lies_between_known_and_planned_is_caught() {
        let (mut known, mut planned) = (StreamClock::default(), StreamClock::default());
        known.learn(stamp(3));
        planned.learn(stamp(5));
        let error = Error::lost("wait", Fault { code: Code::LAUNCH_FAILED, detail: String::new() });
        let (generation, cause) = (Generation(0), Arc::new(Cause::new(error)));
        let replayed = Arc::default();
        let (is_decided, everything, is_interruption) = (true, false, false);
        let loss =
            Loss { generation, cause, known, planned, replayed, is_decided, everything, is_interruption };
        let caught = |loss: &Loss| (1..8).filter(|number| loss.caught(stamp(*number))).collect::<Vec<_>>();
        assert_eq!((caught(&loss), loss.caught_any_of(stamp(0).stream)), (vec![4, 5], true));
        let mut runs = SubmissionSet::default();
        runs.push(stamp(5));
        let loss = Loss { replayed: Arc::new(runs.clone()), ..loss };
        assert_eq!((caught(&loss), loss.caught_any_of(stamp(0).stream)), (vec![4], true));
        runs.push(stamp(4));
        let loss = Loss { replayed: Arc::new(runs), ..loss };
        assert_eq!((caught(&loss), loss.caught_any_of(stamp(0).stream)), (vec![], false));
    }
}
