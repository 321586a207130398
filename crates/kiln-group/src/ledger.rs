//! The collectives that a rank has submitted, and which of them are known to be done.

use std::collections::VecDeque;

use std::panic::Location;

use kiln_driver::DeviceKind;
use kiln_runtime::Ticket;

use crate::collective_part::Part;
use crate::noted_call::{CallCounts, NotedCall};
use crate::remembered_call::{RememberedCall, RememberedCalls};

/// Unfinished collectives before it is looked which of them are done.
const LOOK_AT: usize = 64;

/// What a rank has submitted. Collectives of a rank are done in the order in which they were submitted.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Collectives that were submitted, without those in graphs.
    pub(crate) submitted: u64,
    unfinished: VecDeque<Unfinished>,
    /// What was called on a device that is no simulated one: who is waited for there is found out by this.
    counts: CallCounts,
    /// Some are nodes of graphs, whose replays are not known here.
    pub(crate) has_graphs: bool,
    /// Some were between two ranks alone, so that ranks have submitted different numbers of them.
    pub(crate) has_pairs: bool,
    look_at: usize,
    /// Its device is a simulated one, which moves when it is asked.
    is_simulated: bool,
}

/// A collective that may not be done.
#[derive(Debug)]
struct Unfinished {
    ticket: Ticket,
    /// If it may be done again.
    remembered: Option<RememberedCall>,
    noted: Option<NotedCall>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            submitted: 0,
            unfinished: VecDeque::new(),
            counts: CallCounts::default(),
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
    pub(crate) fn note(
        &mut self,
        ticket: &Ticket,
        remembered: Option<RememberedCall>,
        (parts, place): (&[Part], &'static Location<'static>),
    ) {
        self.submitted += 1;
        self.has_pairs |= parts.iter().any(Part::is_pairwise);
        let noted = (!self.is_simulated).then(|| self.counts.note(parts, place));
        self.unfinished.push_back(Unfinished { ticket: ticket.clone(), remembered, noted });
        if self.unfinished.len() >= self.look_at {
            self.settle();
            self.look_at = LOOK_AT.max(2 * self.unfinished.len());
        }
    }

    /// Forgets what is done.
    pub(crate) fn settle(&mut self) {
        while self.unfinished.front().is_some_and(|one| one.ticket.is_done().unwrap_or(false)) {
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
        self.unfinished.iter().map(|one| &one.ticket)
    }

    /// Those of them that may be done again.
    pub(crate) fn remembered(&self) -> RememberedCalls {
        let numbered = (self.done()..).zip(&self.unfinished);
        numbered.filter_map(|(number, one)| Some((number, one.remembered.clone()?))).collect()
    }

    /// How much was called, where that is known.
    pub(crate) fn counts(&self) -> &CallCounts {
        &self.counts
    }

    /// The oldest call, if it is not done and was not ended, where that is known.
    pub(crate) fn oldest_waiting(&self) -> Option<&NotedCall> {
        let oldest = self.unfinished.front()?;
        oldest.noted.as_ref().filter(|_| matches!(oldest.ticket.is_done(), Ok(false)))
    }
}
