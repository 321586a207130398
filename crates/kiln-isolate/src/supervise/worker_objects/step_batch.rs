//! Steps that a worker takes in order, many of them in one question.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use kiln_driver::Error;

use super::{CALL, SyncError, WorkerState};
use crate::client::connection::Link;
use crate::protocol::protocol_error::ProtocolViolation;
use crate::protocol::wire::{Ask, Malformed, Reader};

/// Steps in one question. Each may come with a descriptor, which stays in the socket until the worker takes it.
const BATCH: usize = 64;
/// The same in the background, so that a takeover does not wait long for the end of one.
const BACKGROUND_BATCH: usize = 8;

/// How fast steps are requested.
#[derive(Clone, Copy)]
pub(crate) enum Pace<'a> {
    /// As fast as possible.
    Immediate,
    /// In small batches, and only while this function returns true.
    Background(&'a dyn Fn() -> bool),
}

impl Pace<'_> {
    fn batch(self) -> usize {
        match self {
            Self::Immediate => BATCH,
            Self::Background(_) => BACKGROUND_BATCH,
        }
    }

    pub(super) fn may_continue(self) -> bool {
        match self {
            Self::Immediate => true,
            Self::Background(may_continue) => may_continue(),
        }
    }
}

/// Why an answer cannot be used.
pub(super) enum AnswerError {
    /// It is no answer to that question.
    Malformed(Malformed),
    /// It is one, and not what is needed.
    Refused(Error),
}

impl From<Malformed> for AnswerError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

type Record<'a> = Box<dyn FnOnce(&mut WorkerState, &mut Reader<'_>) -> Result<(), AnswerError> + 'a>;

/// One question, and what is recorded when it is answered.
struct SyncStep<'a> {
    what: String,
    ask: Ask<'a>,
    descriptor: Option<BorrowedFd<'a>>,
    record: Record<'a>,
}

/// Steps in their order.
#[derive(Default)]
pub(super) struct SyncPlan<'a> {
    steps: VecDeque<SyncStep<'a>>,
}

impl<'a> SyncPlan<'a> {
    /// Adds a step whose answer only confirms it.
    pub(super) fn add(
        &mut self,
        what: impl std::fmt::Display,
        ask: Ask<'a>,
        descriptor: Option<BorrowedFd<'a>>,
        record: impl FnOnce(&mut WorkerState) + 'a,
    ) {
        self.add_read(what, ask, descriptor, |state, _| {
            record(state);
            Ok(())
        });
    }

    /// Adds a step whose answer is read.
    pub(super) fn add_read(
        &mut self,
        what: impl std::fmt::Display,
        ask: Ask<'a>,
        descriptor: Option<BorrowedFd<'a>>,
        record: impl FnOnce(&mut WorkerState, &mut Reader<'_>) -> Result<(), AnswerError> + 'a,
    ) {
        self.steps.push_back(SyncStep { what: what.to_string(), ask, descriptor, record: Box::new(record) });
    }

    /// Has a worker take the steps; returns whether it took all of them. The rest may be tried again later.
    pub(super) fn run(
        mut self,
        link: &Link,
        state: &mut WorkerState,
        pace: Pace<'_>,
    ) -> Result<bool, SyncError> {
        while let Some(first) = self.steps.front() {
            if !pace.may_continue() {
                return Ok(false);
            }
            let next = self.steps.iter().take(pace.batch());
            let asks: Vec<_> = next.map(|step| (step.ask.clone(), step.descriptor)).collect();
            let answers = link.ask_all(CALL, asks).map_err(SyncError::new(&first.what))?;
            for answer in answers {
                let Some(step) = self.steps.pop_front() else { break };
                step.finish(link, state, answer)?;
            }
        }
        Ok(true)
    }
}

impl SyncStep<'_> {
    fn finish(
        self,
        link: &Link,
        state: &mut WorkerState,
        answer: kiln_driver::Result<Vec<u8>>,
    ) -> Result<(), SyncError> {
        let Self { what, record, .. } = self;
        let read = |bytes: Vec<u8>| {
            let mut reader = Reader::new(&bytes);
            record(state, &mut reader)?;
            reader.end().map_err(AnswerError::from)
        };
        let answer = answer.and_then(|bytes| match read(bytes) {
            Ok(()) => Ok(()),
            Err(AnswerError::Refused(error)) => Err(error),
            Err(AnswerError::Malformed(malformed)) => {
                Err(link.violated(CALL, ProtocolViolation::from(malformed)))
            }
        });
        answer.map_err(|error| SyncError { what, error })
    }
}
