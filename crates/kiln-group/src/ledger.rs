//! The collectives that a rank has submitted, and which of them are known to be done.

use std::collections::VecDeque;

use kiln_driver::DeviceKind;
use kiln_runtime::Ticket;

use crate::remembered_call::{RememberedCall, RememberedCalls};

/// Unfinished collectives before it is looked which of them are done.
const LOOK_AT: usize = 64;

/// What a rank has submitted. Collectives of a rank are done in the order in which they were submitted.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Collectives that were submitted, without those in graphs.
    pub(crate) submitted: u64,
    unfinished: VecDeque<(Ticket, Option<RememberedCall>)>,
    /// Some are nodes of graphs, whose replays are not known here.
    pub(crate) has_graphs: bool,
    /// Some were between two ranks alone, so that ranks have submitted different numbers of them.
    pub(crate) has_pairs: bool,
    look_at: usize,
    /// Its device is a simulated one, which moves when it is asked.
    is_simulated: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            submitted: 0,
            unfinished: VecDeque::new(),
            has_graphs: false,
            has_pairs: false,
            look_at: LOOK_AT,
            is_simulated: false,
        }
    }
}

impl Ledger {
    pub(crate) fn new(device: DeviceKind) -> Self {
        Self { is_simulated: device != DeviceKind::Cuda, ..Self::default() }
    }

    /// A collective was submitted.
    pub(crate) fn note(&mut self, ticket: &Ticket, call: Option<RememberedCall>) {
        self.submitted += 1;
        self.unfinished.push_back((ticket.clone(), call));
        if self.unfinished.len() >= self.look_at {
            self.settle();
            self.look_at = LOOK_AT.max(2 * self.unfinished.len());
        }
    }

    /// Forgets what is done.
    pub(crate) fn settle(&mut self) {
        while self.unfinished.front().is_some_and(|(ticket, _)| ticket.is_done().unwrap_or(false)) {
            self.unfinished.pop_front();
        }
    }

    /// Forgets what is done, for a thread that looks on its own: on a simulated machine only the program's own threads ask, whose runs would otherwise differ.
    pub(crate) fn look(&mut self) {
        if !self.is_simulated {
            self.settle();
        }
    }

    /// Collectives that are known to be done: the first so many.
    pub(crate) fn done(&self) -> u64 {
        self.submitted - self.unfinished.len() as u64
    }

    /// Whether something may not be done. Of graphs it is not known.
    pub(crate) fn may_wait(&self) -> bool {
        self.has_graphs || !self.unfinished.is_empty()
    }

    /// The others.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &Ticket> {
        self.unfinished.iter().map(|(ticket, _)| ticket)
    }

    /// Those of them that may be done again.
    pub(crate) fn remembered(&self) -> RememberedCalls {
        let numbered = (self.done()..).zip(&self.unfinished);
        numbered.filter_map(|(number, (_, call))| Some((number, call.clone()?))).collect()
    }
}
