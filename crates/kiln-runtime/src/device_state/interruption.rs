//! Work that was ended before it was done, on a device that goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kiln_order::StreamClock;

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
}
