//! A store that does not answer, as while the process of rank 0 is stopped. It is not known then which ranks have come to a call.

use std::time::{Duration, Instant};

use kiln_driver::ShortTime;
use kiln_runtime::internal::note_finding;

use super::call_text::{called_at, number_text};
use super::{Bridge, Caller, Place};
use crate::collective_part::Part;
use crate::deadline::after;
use crate::error::GroupError;
use crate::rendezvous::WhyAbsent;

/// How long the store may take for an answer at least, also where the deadline is shorter.
const SHORTEST_LIMIT: Duration = Duration::from_millis(500);
const NEXT: &str = "is its process stopped? `kill -CONT` lets it go on";

impl Bridge {
    /// Until when the store may take to answer this rank.
    pub(super) fn answer_end(&self) -> Instant {
        after(Instant::now(), self.deadline.min(self.job.rendezvous.timeout()).max(SHORTEST_LIMIT))
    }

    /// The error of a call for which the store did not answer.
    pub(super) fn silent_store(&self, place: &Place, (part, caller): (&Part, Caller)) -> GroupError {
        let who = "rank 0 of the job, which keeps its store, does not answer";
        let within = ShortTime(self.deadline);
        let what = match place {
            Place::All(_) => {
                let (number, id) = (number_text(place), self.id.short());
                format!(
                    "{number}, {}, of communicator {id} was not done within {within}: {who}",
                    part.collective
                )
            }
            Place::Pair(transfer) => called_at(transfer, part, caller).unmatched(who),
        };
        self.job.rendezvous.say_told(vec![0], WhyAbsent::LateInCall(what.clone()));
        note_finding(&format!("{what}; called at {}", caller.place));
        GroupError::Collective { what, next: NEXT }
    }
}
