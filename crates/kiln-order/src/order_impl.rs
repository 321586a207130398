//! Implements `Order` for the dependency tracker, so that the allocator can ask whether work on a stream is done.

use kiln_driver::{Result, Timeout, Waited};

use crate::dependency_tracker::DependencyTracker;
use crate::order_trait::Order;
use crate::stamp::{Stamp, Stamps};
use crate::stream_key::StreamKey;

impl Order for DependencyTracker {
    fn latest(&self, stream: StreamKey) -> u64 {
        self.state_at(stream).map_or(0, |state| state.planned())
    }

    fn is_ordered(&self, stream: StreamKey, stamp: Stamp) -> bool {
        self.state_at(stream).is_some_and(|state| self.is_ordered_after(&state, stamp))
    }

    fn is_complete(&self, stamp: Stamp) -> bool {
        self.host().covers(stamp)
    }

    fn refresh(&self, stream: StreamKey) -> Result<()> {
        let Some(state) = self.state_at(stream) else { return Ok(()) };
        self.is_done(Stamp { stream, number: state.submitted() }).map(|_| ())
    }

    fn wait_on(&self, stream: StreamKey, stamp: Stamp) -> Result<()> {
        let Some(state) = self.state_at(stream) else { return Ok(()) };
        match self.order_after(&state, &Stamps::from(stamp)) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into_driver("wait_on")),
        }
    }

    fn wait(&self, stamp: Stamp, timeout: Timeout) -> Result<Waited> {
        DependencyTracker::wait(self, stamp, timeout)
    }
}
