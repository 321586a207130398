//! Submits commands to a stream of a runtime.

use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{Command, Driver, StreamId};
use kiln_order::{Stamp, StreamCount, StreamState, Use};

use super::inner::Inner;
use super::recording::WorkLabel;
use super::ticket::Ticket;
use super::timing::Timed;
use crate::error::Result;
use crate::tracing_span;

impl Inner {
    /// Submits work as one step; the errors are those of this crate.
    #[inline(always)]
    pub(crate) fn submit(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        self.submit_as(lane, uses, || None, work)
    }

    /// As [`submit`](Self::submit), with what the work is called where it is recorded.
    #[inline(always)]
    pub(crate) fn submit_as(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        label: impl FnOnce() -> Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        self.check_ready()?;
        if self.is_recorded() {
            return self.submit_recorded(lane, uses, label, work);
        }
        self.submit_unrecorded(lane, uses, work)
    }

    /// The part that is not recorded; the device was found to be ready.
    #[inline(always)]
    pub(super) fn submit_unrecorded(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Stamp> {
        let generation = self.state().generation();
        let stamp = match self.replay_log() {
            None => self.tracker().submit(lane, uses, work)?,
            Some(log) => self.submit_kept(log, lane, uses, None, work)?,
        };
        if self.state().generation() != generation {
            self.recheck_submission(generation, lane, stamp);
        }
        Ok(stamp)
    }

    /// Stamps blocks that work queued already uses.
    pub(crate) fn stamp(&self, lane: &StreamState, uses: &mut [Use<'_>]) -> Result<Stamp> {
        self.check_ready()?;
        self.stamp_foreign(lane, uses)
    }

    /// Submits a launch, counts it, and remembers which line made it.
    #[inline(always)]
    pub(crate) fn submit_launch(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        command: &Command<'_>,
        caller: &'static Location<'static>,
        (label, count): (impl FnOnce() -> WorkLabel, impl FnOnce(&StreamState)),
    ) -> Result<Ticket> {
        if tracing_span::is_submission_heard() {
            return self.submit_launch_heard(lane, uses, command, caller, (label, count));
        }
        self.submit_launch_unheard(lane, uses, command, caller, (label, count))
    }

    #[cold]
    #[inline(never)]
    fn submit_launch_heard(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        command: &Command<'_>,
        caller: &'static Location<'static>,
        (label, count): (impl FnOnce() -> WorkLabel, impl FnOnce(&StreamState)),
    ) -> Result<Ticket> {
        let label = label();
        let span = tracing_span::launch(lane.stream, command.name(), label.name.text());
        let ticket = self.submit_launch_unheard(lane, uses, command, caller, (|| label, count))?;
        tracing_span::numbered(Some(&span), ticket.stamp().number);
        Ok(ticket)
    }

    #[inline(always)]
    fn submit_launch_unheard(
        &self,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        command: &Command<'_>,
        caller: &'static Location<'static>,
        (label, count): (impl FnOnce() -> WorkLabel, impl FnOnce(&StreamState)),
    ) -> Result<Ticket> {
        let label = || Some(label().at(caller));
        let stamp = self.submit_as(lane, uses, label, |driver, stream| {
            // The stream is entered, so what was planned last is this launch.
            lane.sites().note(lane.planned(), caller, || driver.submit(stream, command))?;
            count(lane);
            Ok(())
        })?;
        Ok(Ticket::new(self, stamp))
    }

    /// Submits one command, or nothing at all where there are no bytes to work on.
    #[inline]
    pub(crate) fn submit_command(
        self: &Arc<Self>,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        command: Option<&Command<'_>>,
    ) -> Result<Ticket> {
        let stamp = match command {
            Some(command) => {
                let span = tracing_span::submission(lane.stream, command.name());
                let stamp = self.submit_as(
                    lane,
                    uses,
                    || WorkLabel::of(command),
                    |driver, stream| {
                        driver.submit(stream, command)?;
                        lane.counters().note(command);
                        Ok(())
                    },
                )?;
                tracing_span::numbered(span.as_ref(), stamp.number);
                stamp
            }
            None => {
                self.check_ready()?;
                Stamp { stream: lane.key, number: 0 }
            }
        };
        Ok(Ticket::new(self, stamp))
    }

    /// As [`submit_command`](Self::submit_command), with events directly around the command, behind the waits.
    pub(crate) fn submit_timed(
        self: &Arc<Self>,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        command: Option<Command<'_>>,
        launched_at: Option<&'static Location<'static>>,
        label: impl FnOnce() -> Option<WorkLabel>,
    ) -> Result<Timed> {
        self.submit_work_timed(lane, uses, label, |driver, stream| {
            let Some(command) = &command else { return Ok(()) };
            let queue = || driver.submit(stream, command);
            match launched_at {
                Some(at) => lane.sites().note(lane.planned(), at, queue)?,
                None => drop(queue()?),
            }
            lane.counters().note(command);
            Ok(())
        })
    }

    /// As [`submit`](Self::submit), with events directly around the work.
    pub(crate) fn submit_work_timed(
        self: &Arc<Self>,
        lane: &StreamState,
        uses: &mut [Use<'_>],
        label: impl FnOnce() -> Option<WorkLabel>,
        work: impl FnOnce(&dyn Driver, StreamId) -> std::result::Result<(), kiln_driver::Error>,
    ) -> Result<Timed> {
        let began = self.driver().clock().now();
        let events = self.timers().take(&**self.driver())?;
        let _span = tracing_span::submission(lane.stream, "timed");
        let mut untimed = None;
        let work = |driver: &dyn Driver, stream| {
            driver.submit(stream, &Command::Signal(events.start))?;
            lane.counters().add(StreamCount::Signals, 1);
            work(driver, stream)?;
            match driver.submit(stream, &Command::Signal(events.end)) {
                Ok(_) => lane.counters().add(StreamCount::Signals, 1),
                Err(error) if error.is_sticky() => return Err(error),
                // The work is queued; only its time stays unknown.
                Err(error) => untimed = Some(error),
            }
            Ok(())
        };
        match self.submit_not_again(lane, uses, "its time is taken", label, work) {
            Ok(stamp) => Ok(Timed::new(self.clone(), Ticket::new(self, stamp), events, began, untimed)),
            Err(error) => {
                self.timers().put_back(events);
                Err(error)
            }
        }
    }
}
