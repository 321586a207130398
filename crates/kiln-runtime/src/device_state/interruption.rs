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
    /// Work was ended before it was done, and the device goes on: what lies between the two clocks has failed. A generation ends with that, so that blocks are
    /// judged when they are next used. False if the device takes no work.
    pub(crate) fn interrupt(&self, cause: Cause, known: StreamClock, planned: StreamClock) -> bool {
        let mut data = self.data();
        if data.status.phase() != Phase::Ready {
            return false;
        }
        let generation = data.status.generation;
        data.losses.push(Loss {
            generation,
            cause: Arc::new(cause),
            known,
            planned,
            replayed: Arc::default(),
            is_decided: true,
            everything: false,
            is_interruption: true,
        });
        data.status.generation = Generation(generation.0 + 1);
        self.generation.store(generation.0 + 1, Ordering::Release);
        true
    }

    /// Why work of one of these streams was ended since a generation began, if any was.
    pub(crate) fn ended_since(&self, generation: Generation, latest: &[Stamp]) -> Option<Arc<Cause>> {
        if self.generation() == generation {
            return None;
        }
        let ended = |loss: &Loss| {
            loss.is_interruption
                && loss.generation >= generation
                && latest.iter().any(|stamp| loss.caught_any_of(stamp.stream))
        };
        self.loss_where(ended).map(|loss| loss.cause)
    }
}
