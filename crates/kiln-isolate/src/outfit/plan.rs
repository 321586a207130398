//! Steps that a worker takes one after the other, many in one question.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use kiln_driver::Error;

use super::{CALL, Outfit, Unfit};
use crate::link::Link;
use crate::violation::Violation;
use crate::wire::{Ask, Malformed, Reader};

/// Steps in one question. Each may come with a descriptor, and those lie in the socket until the worker takes them.
const BATCH: usize = 64;
/// The same while nobody waits for it, so that a takeover is not kept waiting for long.
const CALM_BATCH: usize = 8;

/// How fast steps are asked for.
#[derive(Clone, Copy)]
pub(crate) enum Pace<'a> {
    /// As fast as can be.
    Swift,
    /// In small pieces, and only while this says that it may go on.
    Calm(&'a dyn Fn() -> bool),
}

impl Pace<'_> {
    fn batch(self) -> usize {
        match self {
            Self::Swift => BATCH,
            Self::Calm(_) => CALM_BATCH,
        }
    }

    /// Whether to go on.
    pub(super) fn may_go_on(self) -> bool {
        match self {
            Self::Swift => true,
            Self::Calm(may_go_on) => may_go_on(),
        }
    }
}

/// What an answer is found to be.
pub(super) enum Objection {
    /// No answer to that question.
    Malformed(Malformed),
    /// An answer, and not the one that was needed.
    Refused(Error),
}

impl From<Malformed> for Objection {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

type Note<'a> = Box<dyn FnOnce(&mut Outfit, &mut Reader<'_>) -> Result<(), Objection> + 'a>;

/// One question, and what is noted when it is answered.
struct Step<'a> {
    what: String,
    ask: Ask<'a>,
    descriptor: Option<BorrowedFd<'a>>,
    note: Note<'a>,
}

/// Steps in their order.
#[derive(Default)]
pub(super) struct Plan<'a> {
    steps: VecDeque<Step<'a>>,
}

impl<'a> Plan<'a> {
    /// Adds a step whose answer says nothing but that it was done.
    pub(super) fn add(
        &mut self,
        what: impl std::fmt::Display,
        ask: Ask<'a>,
        descriptor: Option<BorrowedFd<'a>>,
        note: impl FnOnce(&mut Outfit) + 'a,
    ) {
        self.add_read(what, ask, descriptor, |outfit, _| {
            note(outfit);
            Ok(())
        });
    }

    /// Adds a step whose answer is read.
    pub(super) fn add_read(
        &mut self,
        what: impl std::fmt::Display,
        ask: Ask<'a>,
        descriptor: Option<BorrowedFd<'a>>,
        note: impl FnOnce(&mut Outfit, &mut Reader<'_>) -> Result<(), Objection> + 'a,
    ) {
        self.steps.push_back(Step { what: what.to_string(), ask, descriptor, note: Box::new(note) });
    }

    /// Has a worker take the steps. Says whether all were taken; what is not may be tried again another time.
    pub(super) fn run(mut self, link: &Link, outfit: &mut Outfit, pace: Pace<'_>) -> Result<bool, Unfit> {
        while let Some(first) = self.steps.front() {
            if !pace.may_go_on() {
                return Ok(false);
            }
            let next = self.steps.iter().take(pace.batch());
            let asks: Vec<_> = next.map(|step| (step.ask.clone(), step.descriptor)).collect();
            let answers = link.ask_all(CALL, asks).map_err(Unfit::new(&first.what))?;
            for answer in answers {
                let Some(step) = self.steps.pop_front() else { break };
                step.finish(link, outfit, answer)?;
            }
        }
        Ok(true)
    }
}

impl Step<'_> {
    fn finish(
        self,
        link: &Link,
        outfit: &mut Outfit,
        answer: kiln_driver::Result<Vec<u8>>,
    ) -> Result<(), Unfit> {
        let Self { what, note, .. } = self;
        let read = |bytes: Vec<u8>| {
            let mut reader = Reader::new(&bytes);
            note(outfit, &mut reader)?;
            reader.end().map_err(Objection::from)
        };
        let answer = answer.and_then(|bytes| match read(bytes) {
            Ok(()) => Ok(()),
            Err(Objection::Refused(error)) => Err(error),
            Err(Objection::Malformed(malformed)) => Err(link.violated(CALL, Violation::from(malformed))),
        });
        answer.map_err(|error| Unfit { what, error })
    }
}
