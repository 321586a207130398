//! Submissions that are kept so that they can be made again, and waits that outlast a lost device.

use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Driver, StreamId, Timeout, Waited};
use kiln_order::{Stamp, StreamKey, StreamState, Use, held_here};

use super::inner::Inner;
use super::recording::WorkLabel;
use super::recovery_hook::RecoveryHook;
use crate::error::{Error, Misuse, Result};
use crate::ids::Generation;
use crate::resubmission::SubmissionLog;

/// Between two questions whether a wait is still wanted.
const WANTED_PERIOD: Duration = Duration::from_millis(100);

impl Inner {
    /// Where submissions are kept; none if they are not.
    #[inline]
    pub(super) fn replay_log(&self) -> Option<&SubmissionLog> {
        self.recovery().and_then(RecoveryHook::replay_log)
    }

    /// As [`submit`](Self::submit), for work that must not be done twice, and why.
    pub(super) fn submit_not_again(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        why: &'static str,
        label: impl FnOnce() -> Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        match self.replay_log() {
            None => self.submit_as(lane, uses, label, work),
            Some(log) => {
                self.check_ready()?;
                self.submit_kept(log, lane, uses, Some(why), work)
            }
        }
    }

    /// Submits work and keeps what it takes to submit it again. What goes wrong is noted before the stream is left: a takeover that comes
    /// in between must not do again what a caller was told had failed.
    #[inline(never)]
    pub(super) fn submit_kept(
        &self,
        log: &SubmissionLog,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        hindrance: Option<&'static str>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        let accesses = SubmissionLog::accesses(uses);
        let mut begun = self.tracker().begin(lane, uses)?;
        let stamp = begun.stamp();
        log.begin(stamp, accesses, hindrance, self.tracker().host());
        let queued = work(&**self.driver(), lane.stream).map_err(|error| begun.failed(error));
        let queued = queued.and_then(|()| begun.record());
        if queued.is_err() {
            log.fail(stamp);
        }
        drop(begun);
        queued?;
        Ok(stamp)
    }

    /// Notes that the caller queues foreign work on a stream that is entered.
    pub(crate) fn note_foreign(&self, lane: &StreamState, uses: &[Use<'_>]) {
        if let Some(log) = self.replay_log() {
            let stamp = Stamp { stream: lane.key, number: lane.planned() };
            log.begin(stamp, SubmissionLog::accesses(uses), Some(FOREIGN), self.tracker().host());
        }
    }

    /// Stamps blocks that work of the caller's uses, which is queued already.
    pub(crate) fn stamp_foreign(&self, lane: &StreamState, uses: &mut [Use<'_>]) -> Result<Stamp> {
        let accesses = self.replay_log().map(|log| (log, SubmissionLog::accesses(uses)));
        let stamp = self.tracker().stamp(lane, uses)?;
        if let Some((log, accesses)) = accesses {
            log.begin(stamp, accesses, Some(FOREIGN), self.tracker().host());
        }
        Ok(stamp)
    }

    /// Waits until a submission is over, one way or the other; false if time ran out. Where unfinished work may be done again, a device that
    /// is lost meanwhile is waited for, too.
    pub(crate) fn wait_out(&self, stamp: Stamp, timeout: Timeout) -> Result<bool> {
        self.wait_out_by(timeout, stamp, &|left| self.tracker().wait(stamp, left))
    }

    /// The same, as long as the wait is wanted, which is asked about ten times a second; false once it is not. A device may be busy for long with work that was
    /// [ended](crate::internal::end_work). Virtual time passes only where it is waited for, and there nothing is asked.
    pub(crate) fn wait_out_while(
        &self,
        stamp: Stamp,
        timeout: Timeout,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<bool> {
        if !self.has_wall_clock() {
            return self.wait_out(stamp, timeout);
        }
        let wait = |left| self.tracker().wait_while(stamp, left, WANTED_PERIOD, is_wanted);
        self.wait_out_by(timeout, stamp, &wait)
    }

    /// Whether time passes on the device as on the host: a simulated device of this process has virtual time.
    fn has_wall_clock(&self) -> bool {
        self.driver().info().kind != DeviceKind::Simulated || self.recovery().is_some()
    }

    fn wait_out_by(
        &self,
        timeout: Timeout,
        stamp: Stamp,
        wait: &dyn Fn(Timeout) -> std::result::Result<Waited, kiln_driver::Error>,
    ) -> Result<bool> {
        let mut left = timeout;
        loop {
            match wait(left) {
                Ok(waited) if !waited.is_done() => return Ok(false),
                Ok(_) if self.tracker().host().covers(stamp) || !self.state().is_undecided() => {
                    return Ok(true);
                }
                Err(error)
                    if !error.is_sticky() || !self.state().defers() || self.state().phase().is_over() =>
                {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => {}
            }
            if !matches!(left, Timeout::Poll) {
                // The takeover enters every stream first.
                self.check_not_holding()?;
                self.check_not_healing()?;
            }
            // Only a device in a worker process gets here, and its clock is the wall's.
            let began = Instant::now();
            let decided = match left {
                Timeout::Poll => false,
                Timeout::After(left) => self.state().await_decision(Some(left)),
                Timeout::Never => self.state().await_decision(None),
            };
            if !decided {
                return Ok(false);
            }
            if let Timeout::After(limit) = left {
                left = Timeout::After(limit.saturating_sub(began.elapsed()));
            }
        }
    }

    /// Refuses to wait for a thread that waits until this thread has left the streams it is inside of.
    pub(crate) fn check_not_holding(&self) -> Result<()> {
        match held_here(self.tracker().host(), |_| true) {
            Some(stream) => Err(Misuse::Prepared { stream: stream.to_string() }.into()),
            None => Ok(()),
        }
    }

    /// Refuses to wait for what this thread itself is to bring about.
    pub(crate) fn check_not_healing(&self) -> Result<()> {
        if self.state().is_undecided() && self.state().is_rebuilt_here() {
            return Err(Misuse::WaitWhileHealing.into());
        }
        Ok(())
    }

    /// The fault, if work of these streams was lost with it and nothing was asked of any of them since. A wait that begins when the device is
    /// back must not say that everything is done.
    pub(crate) fn check_latest(&self, latest: &[Stamp]) -> Result<()> {
        match self.state().last_failure(latest) {
            Some(cause) => Err(Error::of_cause(&cause)),
            None => Ok(()),
        }
    }

    /// The fault, if work of a stream was not done because the device was lost since generation `since`.
    pub(crate) fn check_stream(&self, since: Generation, stream: StreamKey) -> Result<()> {
        match self.state().failure_since(since, stream) {
            Some(cause) => Err(Error::of_cause(&cause)),
            None => Ok(()),
        }
    }
}

const FOREIGN: &str = "its caller queued it past the runtime";
