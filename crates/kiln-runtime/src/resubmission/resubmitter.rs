//! Submits kept work again, to the next worker.
//!
//! On one stream, one after another in the order of submission, past the order of the runtime: no other thread submits meanwhile. Each is marked
//! as the first time, so that it is known how far it came if that costs another worker.

use std::collections::HashMap;
use std::time::Duration;

use kiln_driver::{Driver, Error, Result, StreamId, StreamRequest, Timeout, WaitTarget};
use kiln_order::Stamp;

use super::kept_submission::Record;
use super::outcome::{Outcome, ReplayRefusal};
use super::resubmit_decision::ReplayDecision;
use super::stream_start_marks::{MarkValues, REPLAYER, StartMarks};
use crate::device_state::{Phase, StateCell};

/// How often it checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// A separate stream, for one takeover.
pub(crate) struct Replayer<'a> {
    pub(crate) device: &'a dyn Driver,
    pub(crate) marks: &'a StartMarks,
    pub(crate) state: &'a StateCell,
}

/// What was done again.
pub(crate) struct Replayed {
    pub(crate) outcomes: HashMap<Stamp, Outcome>,
    /// The worker was lost meanwhile; what was queued then, in this order, behind a number of the marks.
    pub(crate) interrupted: Option<(Vec<Stamp>, u64)>,
}

impl Replayer<'_> {
    /// Does again what can be, in the order it is given.
    pub(crate) fn replay(&self, records: &[Record], mut decision: ReplayDecision<'_>) -> Replayed {
        let mut outcomes = HashMap::new();
        let before = self.marks.next_replayed(records.len() as u64 + 1);
        let mut queued = Vec::new();
        let replayed = self.device.create_stream(StreamRequest::New { priority: 0 }).and_then(|stream| {
            for record in records {
                let outcome = match decision.judge(record) {
                    Err(why) => Outcome::Failed(why),
                    Ok(()) => {
                        queued.push(record.stamp);
                        self.submit(stream, record, before + queued.len() as u64)?
                    }
                };
                match outcome {
                    Outcome::Replayed => decision.done(record),
                    Outcome::Failed(_) => {
                        // One that was refused is not to count as done when its mark is found.
                        queued.retain(|stamp| *stamp != record.stamp);
                        decision.failed(record);
                    }
                }
                outcomes.insert(record.stamp, outcome);
            }
            self.await_all(stream)?;
            self.device.destroy(stream.into())
        });
        let interrupted = replayed.err().map(|error| {
            tracing::warn!(%error, "work could not be done again");
            for record in records {
                let why = decision.judge(record).err().unwrap_or(ReplayRefusal::Interrupted);
                let outcome = outcomes.entry(record.stamp).or_insert(Outcome::Failed(why));
                if outcome.is_replayed() {
                    *outcome = Outcome::Failed(ReplayRefusal::Interrupted);
                }
            }
            (queued, before)
        });
        Replayed { outcomes, interrupted }
    }

    /// Queues one; it fails by itself if the device is there and does not take it.
    fn submit(&self, stream: StreamId, record: &Record, number: u64) -> Result<Outcome> {
        let mark = self.marks.set(self.device, stream, REPLAYER, number).map(|_| ());
        let mut commands = record.commands.iter();
        let queued = mark.and_then(|()| {
            commands.try_for_each(|command| self.device.submit(stream, &command.command()).map(|_| ()))
        });
        match queued {
            Ok(()) => Ok(Outcome::Replayed),
            Err(error) if error.is_sticky() => Err(error),
            Err(error) => {
                tracing::warn!(%error, work = %record.stamp, "work was refused when it was to be done again");
                Ok(Outcome::Failed(ReplayRefusal::Unsuited("the device refused it")))
            }
        }
    }

    /// Waits until all of it is done, or it is not wanted any more.
    fn await_all(&self, stream: StreamId) -> Result<()> {
        while !self.device.wait(WaitTarget::Stream(stream), Timeout::After(LOOK))?.is_done() {
            if self.state.phase() != Phase::Rebuilding {
                return Err(Error::invalid("replay", "the device is shutting down", "nothing"));
            }
        }
        Ok(())
    }
}

impl Replayed {
    /// Says what was done of it before the worker was lost. What was being done then, and what stood behind it, has failed.
    pub(crate) fn resume(&mut self, values: &MarkValues) {
        let Some((queued, before)) = self.interrupted.take() else { return };
        let Some(reached) = values.number(REPLAYER, before + queued.len() as u64) else { return };
        // The one whose mark is there may have been under way.
        let done = reached.saturating_sub(before).saturating_sub(1) as usize;
        for stamp in queued.iter().take(done) {
            self.outcomes.insert(*stamp, Outcome::Replayed);
        }
    }
}
