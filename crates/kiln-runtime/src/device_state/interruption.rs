//! Work that was ended before it was done, on a device that goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kiln_order::{Stamp, StreamClock};

use super::cause::Cause;
use super::loss::Loss;
use super::phase::Phase;
use super::state_cell::StateCell;
use crate::ids::Generation;

impl StateCell {
    /// Work was ended before it was done, and the device goes on: what lies between the two clocks that `judge` answers has failed. A generation ends with that, so that blocks are
    /// judged when they are next used. False if the device takes no work.
    ///
    /// A waiter learns that work is done, then looks whether it has failed, and then tells so. The generation changes before `judge` reads what is known to be done: a waiter
    /// that does not see the change has told what `judge` sees, and one that sees it waits here for the verdict.
    pub(crate) fn interrupt(
        &self,
        cause: Arc<Cause>,
        judge: impl FnOnce() -> (StreamClock, StreamClock),
    ) -> bool {
        let mut data = self.data();
        if data.status.phase() != Phase::Ready {
            return false;
        }
        let generation = data.status.generation;
        self.generation.store(generation.0 + 1, Ordering::SeqCst);
        let (known, planned) = judge();
        data.losses.push(Loss {
            generation,
            cause,
            known,
            planned,
            replayed: Arc::default(),
            is_decided: true,
            everything: false,
            is_interruption: true,
        });
        data.status.generation = Generation(generation.0 + 1);
        true
    }

    /// Why work of one of these streams was ended since a generation began, if any was.
    pub(crate) fn ended_since(&self, generation: Generation, latest: &[Stamp]) -> Option<Arc<Cause>> {
        if self.generation() == generation {
            return None;
        }
        self.ended_where(generation, |loss| latest.iter().any(|stamp| loss.caught_any_of(stamp.stream)))
    }

    /// Why work was ended since a generation began, if one of the ends is such a one.
    pub(crate) fn ended_where(
        &self,
        generation: Generation,
        is: impl Fn(&Loss) -> bool,
    ) -> Option<Arc<Cause>> {
        let ended = |loss: &Loss| loss.is_interruption && loss.generation >= generation && is(loss);
        self.loss_where(ended).map(|loss| loss.cause)
    }
}
