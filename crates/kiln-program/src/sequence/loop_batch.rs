//! Several iterations of a loop as one submission.

use kiln_ir::{STATUS_BYTES, TrapStatus};
use kiln_runtime::{GraphBuilder, Output, Result, Ticket};

use super::split_into_submissions::Again;
use super::submitter::Queue;
use crate::error::ProgramError;

/// Some turns of a loop, which may be submitted more than once.
pub(crate) struct Batch {
    builder: GraphBuilder,
    pub(crate) turns: u64,
    statuses: Vec<(String, Output<u8>)>,
    flag: Option<Output<u8>>,
}

impl Batch {
    pub(crate) fn new(mut builder: GraphBuilder, again: &Again, turns: u64) -> Result<Self> {
        for _ in 0..turns {
            builder.again(&again.works);
        }
        let mut statuses = Vec::new();
        let mut flag = None;
        if let Some(until) = &again.until {
            flag = Some(builder.download(&until.flag)?);
            for (program, status) in &again.statuses {
                statuses.push((program.clone(), builder.download(status)?));
            }
        }
        Ok(Self { builder, turns, statuses, flag })
    }

    pub(crate) async fn submit(&mut self, queue: &mut Queue) -> Result<Ticket> {
        let submitted = queue.submit(&mut self.builder)?;
        queue.take_time(submitted).await
    }

    /// Once it is done: whether the last of its turns changed something. A trap is an error.
    pub(crate) fn look(&mut self) -> Result<bool> {
        for (program, status) in &self.statuses {
            check_status(program, self.builder.output(status)?)?;
        }
        match &self.flag {
            Some(flag) => Ok(is_set(self.builder.output(flag)?)),
            None => Ok(true),
        }
    }
}

/// Whether a flag says that something changed.
pub(crate) fn is_set(flag: &[u8]) -> bool {
    flag.iter().any(|byte| *byte != 0)
}

/// Refuses the status of a program that trapped.
pub(crate) fn check_status(program: &str, status: &[u8]) -> Result<()> {
    match status.first_chunk::<{ STATUS_BYTES as usize }>().map(TrapStatus::read) {
        Some(TrapStatus::Trapped { code, thread, block }) => {
            Err(ProgramError::Trap { program: program.to_owned(), code, thread, block }.into())
        }
        _ => Ok(()),
    }
}
