//! A submission that has its stamp and whose work is on its way to the driver.

use kiln_driver::Error;

use crate::dependency_tracker::DependencyTracker;
use crate::stamp::Stamp;
use crate::stream_state::{StreamEntry, StreamState};
use crate::sync_shim::BiasedGuard;

/// A submission whose work is being queued.
pub struct PendingSubmission<'a> {
    pub(crate) tracker: &'a DependencyTracker,
    pub(crate) state: &'a StreamState,
    pub(crate) entry: BiasedGuard<'a, StreamEntry>,
    pub(crate) stamp: Stamp,
}

impl PendingSubmission<'_> {
    /// What it will be known as.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The work is with the driver: records an event if this stream does so at once.
    ///
    /// # Errors
    /// What the driver says.
    #[inline]
    pub fn record(&mut self) -> Result<(), Error> {
        self.tracker.record_at_once(self.state, &mut self.entry, self.stamp)
    }

    /// The work is not with the driver, or a part of it only. If that is because the device is lost, nothing says later how much of it
    /// happened; so that is noted here.
    #[cold]
    pub fn failed(&self, error: Error) -> Error {
        if error.is_sticky() {
            self.state.note_broken(self.stamp.number);
        }
        error
    }
}

impl Drop for PendingSubmission<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.state.set_submitted(self.stamp.number);
    }
}
