//! Runs a sequence: submits its parts in order, repeats its loops, and returns its results.
//!
//! Nothing is handed out before everything is known to have ended well. What ended badly leaves host vectors as they were, and the resident
//! buffers it writes in doubt.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use kiln_runtime::internal::copied;
use kiln_runtime::{Error, ErrorKind, Result, Ticket};

use super::loop_batch::{Batch, check_status, is_set};
use super::split_into_submissions::{Again, Part};
use super::submitter::{Queue, Submitted, Waiting};
use super::{Destination, Read, Sequence, Watched};
use crate::binding::Outputs;
use crate::dispatch::Dispatched;
use crate::error::ProgramError;

/// Turns between two looks at a flag, at the most.
const MAX_BATCH_TURNS: u64 = 64;
/// Commands of a submission without a check, at the most, unless one turn has more.
const MAX_BATCH_COMMANDS: u64 = 1024;

/// A sequence being run.
pub(crate) struct Run<'a> {
    parts: Vec<Part>,
    watched: Vec<Watched>,
    reads: Vec<Read<'a>>,
    steps: u64,
    queue: Queue,
    /// The first part, if it is queued already.
    first: Option<Submitted>,
    /// Whether it is known how it ended.
    is_over: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new(sequence: Sequence<'a>, waiting: Waiting) -> Self {
        let Sequence { backend, mut parts, builder, reads, watched, steps, timeout, profile, name, .. } =
            sequence;
        parts.push(Part { builder, again: None });
        let name = name.unwrap_or_else(|| "sequence".to_owned());
        let queue = Queue::new(backend.runtime().clone(), name, timeout, profile, waiting);
        Self { parts, watched, reads, steps, queue, first: None, is_over: false }
    }

    /// Queues the first part, so that the device has work before anything is waited for.
    pub(crate) fn start(&mut self) -> Result<Ticket> {
        // There is one: what is recorded behind the last loop.
        let submitted = self.queue.submit(&mut self.parts[0].builder);
        let submitted = submitted.map_err(|error| self.failed(error))?;
        let ticket = submitted.ticket.clone();
        self.first = Some(submitted);
        Ok(ticket)
    }

    /// Runs everything, blocks until it is done, and hands out the results.
    pub(crate) fn finish(self) -> Result<Dispatched> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.complete()).poll(&mut context) {
            Poll::Ready(done) => done,
            Poll::Pending => {
                let what = "a wait that did not block";
                Err(kiln_driver::Error::invalid("dispatch", what, "report this").into())
            }
        }
    }

    /// Runs everything and hands out the results.
    pub(crate) async fn complete(mut self) -> Result<Dispatched> {
        let done = self.run_parts().await;
        done.map_err(|error| self.failed(error))?;
        self.is_over = true;
        let outputs = self.hand_out()?;
        Ok(Dispatched { outputs, timing: self.queue.timing, steps: self.steps })
    }

    /// Notes what an error leaves behind.
    fn failed(&mut self, error: Error) -> Error {
        if leaves_doubt(&error) {
            self.doubt_written();
        }
        self.is_over = true;
        error
    }

    fn doubt_written(&self) {
        self.parts.iter().for_each(|part| part.builder.doubt_written());
    }

    /// Hands out the results. All room for them is found first, so that vectors of the caller change together or not at all.
    fn hand_out(&mut self) -> Result<Outputs> {
        let mut outputs = Outputs::default();
        let mut into = Vec::new();
        for read in std::mem::take(&mut self.reads) {
            let Some(part) = self.parts.get_mut(read.part) else { continue };
            let bytes = part.builder.output(&read.from)?;
            match read.to {
                Destination::Into(vector) => {
                    vector.reserve(bytes.len())?;
                    into.push((read.part, read.from, vector));
                }
                Destination::Returned(name, element) => {
                    outputs.buffers.push((name, element, copied(bytes, "the outputs of a program")?));
                }
            }
        }
        for (part, from, vector) in into {
            if let Some(part) = self.parts.get_mut(part) {
                vector.replace(part.builder.output(&from)?);
            }
        }
        Ok(outputs)
    }

    async fn run_parts(&mut self) -> Result<()> {
        let mut last = None;
        for at in 0..self.parts.len() {
            let submitted = match self.first.take() {
                Some(submitted) => submitted,
                None => self.queue.submit(&mut self.parts[at].builder)?,
            };
            let ticket = self.queue.take_time(submitted).await?;
            last = match self.parts[at].again.take() {
                None => Some(ticket),
                Some(again) if again.until.is_none() => Some(self.repeat(&again, ticket).await?),
                Some(again) => {
                    self.queue.wait(&ticket).await?;
                    self.turn_until(at, &again).await?;
                    None
                }
            };
        }
        if let Some(ticket) = last {
            self.queue.wait(&ticket).await?;
        }
        self.check_traps(self.parts.len())
    }

    /// The turns of a loop behind the first, without a look or a wait in between.
    async fn repeat(&mut self, again: &Again, first: Ticket) -> Result<Ticket> {
        let most = MAX_BATCH_COMMANDS.div_ceil(again.works.len().max(1) as u64);
        let (mut left, mut last) = (again.turns, first);
        let mut batch: Option<Batch> = None;
        while left > 0 {
            let turns = left.min(most);
            let ready = match batch.take() {
                Some(batch) if batch.turns == turns => batch,
                _ => Batch::new(self.queue.runtime.graph(), again, turns)?,
            };
            last = batch.insert(ready).submit(&mut self.queue).await?;
            self.count(again, turns);
            left -= turns;
        }
        Ok(last)
    }

    /// The turns of a loop behind the first, which is done, until its flag is left at zero.
    async fn turn_until(&mut self, part: usize, again: &Again) -> Result<()> {
        self.check_traps(part + 1)?;
        let Some(until) = &again.until else { return Ok(()) };
        let (mut left, mut turns) = (again.turns, 1_u64);
        let mut changed = is_set(self.parts[part].builder.output(&until.look)?);
        while changed {
            if left == 0 {
                let (program, steps) = (until.program.clone(), again.turns.saturating_add(1));
                return Err(ProgramError::NotConverged { program, steps }.into());
            }
            turns = turns.saturating_mul(2).min(MAX_BATCH_TURNS).min(left);
            let mut batch = Batch::new(self.queue.runtime.graph(), again, turns)?;
            let ticket = batch.submit(&mut self.queue).await?;
            self.queue.wait(&ticket).await?;
            self.count(again, turns);
            left -= turns;
            changed = batch.look()?;
        }
        Ok(())
    }

    fn count(&mut self, again: &Again, turns: u64) {
        self.steps = self.steps.saturating_add(turns.saturating_mul(again.programs));
    }

    /// Whether a program of the first parts trapped; all of them are done.
    fn check_traps(&mut self, parts: usize) -> Result<()> {
        for watched in self.watched.iter().filter(|watched| watched.part < parts) {
            if let Some(part) = self.parts.get_mut(watched.part) {
                check_status(&watched.program, part.builder.output(&watched.output)?)?;
            }
        }
        Ok(())
    }
}

impl Drop for Run<'_> {
    /// A run that is dropped before its end was not looked at: a trap would not be known, and the turns of a loop may be missing.
    fn drop(&mut self) {
        if !self.is_over && (!self.watched.is_empty() || self.parts.len() > 1) {
            self.doubt_written();
        }
    }
}

/// Whether resident buffers may hold something no program was to leave there: a part of what was queued, or what a trap left. What did not
/// converge holds what its turns made, and of a lost device it is found out block by block what went with it.
fn leaves_doubt(error: &Error) -> bool {
    if let Some(error) = error.downcast_ref::<ProgramError>() {
        return !matches!(error, ProgramError::NotConverged { .. });
    }
    match error.kind() {
        ErrorKind::Stale(_) | ErrorKind::NotReady { .. } => false,
        _ => !error.is_lost(),
    }
}
