//! What a loss left behind, as numbers.

use std::sync::Arc;

use super::cause::Cause;
use crate::order::{Clock, Stamp};
use crate::runtime::Generation;

/// The end of a generation: what was known to be done then, and what had been asked for.
///
/// A block is lost with it if one of its last writes lies in between. That is a question about numbers, so nobody has to know all
/// blocks: each is judged when its handle is next used.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) generation: Generation,
    pub(crate) cause: Arc<Cause>,
    /// Everything here was known to be done.
    pub(crate) known: Clock,
    /// Everything here had been asked for.
    pub(crate) planned: Clock,
    /// Whoever rebuilt the device keeps nothing.
    pub(crate) everything: bool,
}

impl Loss {
    /// Whether work was unfinished when the device was lost.
    pub(crate) fn caught(&self, stamp: Stamp) -> bool {
        self.planned.covers(stamp) && !self.known.covers(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::StreamKey;
    use kiln_driver::{Code, Error, Fault};

    fn stamp(number: u64) -> Stamp {
        Stamp { stream: StreamKey::default(), number }
    }

    #[test]
    fn what_lies_between_known_and_planned_is_caught() {
        let (mut known, mut planned) = (Clock::default(), Clock::default());
        known.learn(stamp(3));
        planned.learn(stamp(5));
        let error = Error::lost("wait", Fault { code: Code::LAUNCH_FAILED, detail: String::new() });
        let (generation, cause) = (Generation(0), Arc::new(Cause::new(error)));
        let loss = Loss { generation, cause, known, planned, everything: false };
        let caught: Vec<u64> = (1..8).filter(|number| loss.caught(stamp(*number))).collect();
        assert_eq!(caught, [4, 5]);
    }
}
