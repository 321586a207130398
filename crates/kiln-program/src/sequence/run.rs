//! A sequence being run: its parts submitted in order, its loops turned, its results handed out.
//!
//! Nothing is handed out before everything is known to have ended well. What ended badly leaves host vectors as they were, and the resident
//! buffers it writes in doubt.

use kiln_runtime::{Error, ErrorKind, Result, Ticket};

use super::batch::{Batch, check_status, is_set};
use super::part::{Again, Part};
use super::queue::Queue;
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
}

impl<'a> Run<'a> {
    pub(crate) fn new(sequence: Sequence<'a>) -> Self {
        let Sequence { backend, mut parts, builder, reads, watched, steps, timeout, profile, name, .. } =
            sequence;
        parts.push(Part { builder, again: None });
        let name = name.unwrap_or_else(|| "sequence".to_owned());
        let queue = Queue::new(backend.runtime().clone(), name, timeout, profile);
        Self { parts, watched, reads, steps, queue }
    }

    /// Runs everything, waits, and hands out the results.
    pub(crate) fn finish(mut self) -> Result<Dispatched> {
        if let Err(error) = self.run_parts() {
            if leaves_doubt(&error) {
                self.parts.iter().for_each(|part| part.builder.doubt_written());
            }
            return Err(error);
        }
        let mut outputs = Outputs::default();
        for read in std::mem::take(&mut self.reads) {
            let Some(part) = self.parts.get_mut(read.part) else { continue };
            let bytes = part.builder.output(&read.from)?;
            match read.to {
                Destination::Into(vector) => vector.replace(bytes),
                Destination::Returned(name, element) => outputs.buffers.push((name, element, bytes.to_vec())),
            }
        }
        Ok(Dispatched { outputs, timing: self.queue.timing, steps: self.steps })
    }

    fn run_parts(&mut self) -> Result<()> {
        let mut last = None;
        for at in 0..self.parts.len() {
            let ticket = self.queue.submit(&mut self.parts[at].builder)?;
            last = match self.parts[at].again.take() {
                None => Some(ticket),
                Some(again) if again.until.is_none() => Some(self.repeat(&again, ticket)?),
                Some(again) => {
                    self.queue.wait(&ticket)?;
                    self.turn_until(at, &again)?;
                    None
                }
            };
        }
        if let Some(ticket) = last {
            self.queue.wait(&ticket)?;
        }
        self.check_traps(self.parts.len())
    }

    /// The turns of a loop behind the first. The host neither checks nor waits.
    fn repeat(&mut self, again: &Again, first: Ticket) -> Result<Ticket> {
        let most = MAX_BATCH_COMMANDS.div_ceil(again.works.len().max(1) as u64);
        let (mut left, mut last) = (again.turns, first);
        let mut batch: Option<Batch> = None;
        while left > 0 {
            let turns = left.min(most);
            let ready = match batch.take() {
                Some(batch) if batch.turns == turns => batch,
                _ => Batch::new(self.queue.runtime.graph(), again, turns)?,
            };
            last = batch.insert(ready).submit(&mut self.queue)?;
            self.count(again, turns);
            left -= turns;
        }
        Ok(last)
    }

    /// The turns of a loop behind the first, which is done, until its flag is left at zero.
    fn turn_until(&mut self, part: usize, again: &Again) -> Result<()> {
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
            let ticket = batch.submit(&mut self.queue)?;
            self.queue.wait(&ticket)?;
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

/// Whether resident buffers may hold something no program was to leave there: a part of what was queued, or what a trap left. What did not
/// converge holds what its turns made, and of a lost device it is found out block by block what went with it.
fn leaves_doubt(error: &Error) -> bool {
    if let Some(error) = error.downcast_ref::<ProgramError>() {
        return !matches!(error, ProgramError::NotConverged { .. });
    }
    match error.kind() {
        ErrorKind::Stale(_) | ErrorKind::NotReady { .. } => false,
        _ => !error.is_sticky(),
    }
}
