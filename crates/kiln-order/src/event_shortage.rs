//! What is done when no event is available.
//!
//! Events are limited, and a program may hold on to all of them; the device may have no room for one more. Work that waits is stamped by
//! then, and the next submission waits for it alone, so an edge cannot be left out. The host waits in the place of the event: that is slow,
//! and nothing is lost.

use kiln_driver::{Error, Timeout, WaitTarget, Waited};

use crate::dependency_tracker::DependencyTracker;
use crate::stamp::Stamp;
use crate::stream_state::StreamState;
use crate::submit_error::given_back;
use crate::sync_shim::Ordering;

impl DependencyTracker {
    /// Waits on the host for a number of a stream, and with it for everything the stream has to do by now.
    ///
    /// # Errors
    /// What the driver says.
    #[cold]
    pub(crate) fn wait_stream(
        &self,
        state: &StreamState,
        number: u64,
        timeout: Timeout,
    ) -> Result<Waited, Error> {
        let stamp = Stamp { stream: state.key, number: state.await_submitted(number) };
        let Some(_admission) = state.admit() else {
            // Where no event could be recorded at its end, that was waited for.
            let is_done = self.host.covers(Stamp { stream: state.key, number });
            return if is_done { Ok(Waited::Done) } else { Err(given_back(state.stream)) };
        };
        let waited = self.driver.wait(WaitTarget::Stream(state.stream), timeout)?;
        if waited.is_done() && !self.held.load(Ordering::Acquire) {
            self.host.learn(stamp);
        }
        Ok(waited)
    }
}
