//! How a host thread waits for work.

use std::time::Duration;

use kiln_driver::{Error, Timeout, WaitTarget, Waited};

use crate::dependency_tracker::DependencyTracker;
use crate::held_streams::held_here;
use crate::stamp::Stamp;
use crate::stream_counters::StreamCount;
use crate::stream_state::Point;
use crate::submit_error::held_error;
use crate::sync_shim::Ordering;

impl DependencyTracker {
    /// Waits on the host for a stamp.
    ///
    /// # Errors
    /// What the driver says; work that this thread has yet to queue.
    pub fn wait(&self, stamp: Stamp, timeout: Timeout) -> Result<Waited, Error> {
        self.wait_by(stamp, timeout, |wait| wait(timeout))
    }

    /// Waits as [`wait`](Self::wait) does, as long as the wait is wanted; that is asked once per period. A wait that is no longer wanted ends as if time had run out.
    /// For devices whose clock is the clock of the host.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn wait_while(
        &self,
        stamp: Stamp,
        timeout: Timeout,
        period: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Waited, Error> {
        let clock = self.driver().clock();
        let end = match timeout {
            Timeout::Poll => return self.wait(stamp, timeout),
            // A limit that no clock reaches is none.
            Timeout::After(limit) => clock.now().checked_add(limit),
            Timeout::Never => None,
        };
        self.wait_by(stamp, timeout, |wait| {
            loop {
                let left = end.map(|end| end.saturating_sub(clock.now()));
                let part = left.map_or(period, |left| left.min(period));
                if wait(Timeout::After(part))?.is_done() {
                    return Ok(Waited::Done);
                }
                if left == Some(part) || !is_wanted() {
                    return Ok(Waited::TimedOut);
                }
            }
        })
    }

    fn wait_by(
        &self,
        stamp: Stamp,
        timeout: Timeout,
        repeat: impl FnOnce(&dyn Fn(Timeout) -> Result<Waited, Error>) -> Result<Waited, Error>,
    ) -> Result<Waited, Error> {
        if self.host().covers(stamp) {
            return Ok(Waited::Done);
        }
        let state = self.state(stamp.stream)?;
        if state.submitted() < stamp.number {
            if matches!(timeout, Timeout::Poll) {
                return Ok(Waited::TimedOut);
            }
            if let Some(stream) = held_here(self.host(), |held| held.is_awaited_by(stamp)) {
                return Err(held_error("wait", stream));
            }
        }
        let kind =
            if matches!(timeout, Timeout::Poll) { StreamCount::HostPolls } else { StreamCount::HostWaits };
        state.counters().add(kind, 1);
        match self.point(&state, stamp.number) {
            Ok(point) => repeat(&|timeout| self.wait_point(&point, timeout)),
            Err(error) if error.is_sticky() => Err(error),
            Err(_) => repeat(&|timeout| self.wait_stream(&state, stamp.number, timeout)),
        }
    }

    /// Waits on the host for a point. What is done then is known from here on, unless the order is [held](Self::hold).
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait_point(&self, point: &Point, timeout: Timeout) -> Result<Waited, Error> {
        let waited = self.driver().wait(WaitTarget::Event(point.event.event()), timeout)?;
        if waited.is_done() && !self.held.load(Ordering::Acquire) {
            self.host().learn(point.stamp);
            self.host().join(&point.clock);
        }
        Ok(waited)
    }
}
