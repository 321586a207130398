//! Ranks in several processes that call different things: the error, and the finding.

use kiln_driver::Refusal;
use kiln_runtime::Error;
use kiln_runtime::internal::note_finding;

use super::call_text::{called_at, number_text};
use super::{Bridge, Brought, Caller, NEXT, Place};
use crate::called_collective::CalledCollective;
use crate::collective_part::Part;
use crate::error::GroupError;

/// Before the line in what is said of a transfer.
const AT: &str = ", at ";

impl Bridge {
    /// What two ranks called that meet, and differ in. With the lines of both.
    pub(super) fn disagreement(
        &self,
        (place, part, caller): (&Place, &Part, Caller),
        other_rank: u32,
        (own, other): (&str, Brought),
    ) -> GroupError {
        let (call, other_call) = match place {
            Place::All(_) => (own.to_owned(), (other.called.clone(), other.said)),
            Place::Pair(transfer) => {
                let call = called_at(transfer, part, caller).to_string();
                let (what, line) = other.said.rsplit_once(AT).unwrap_or((&other.said, ""));
                (
                    call.rsplit_once(AT).map_or(call.as_str(), |(what, _)| what).to_owned(),
                    (what.to_owned(), line.to_owned()),
                )
            }
        };
        let refusal = Refusal::Disagreement {
            communicator: self.id.short(),
            rank: self.rank,
            other_rank,
            what: number_text(place),
            value: own.to_owned(),
            other_value: other.called,
            next: NEXT,
        };
        let call = CalledCollective::new(self.rank, &call, caller.place);
        let (what, place) = other_call;
        let other_call = CalledCollective { rank: other_rank, what, place };
        note_finding(&format!("{refusal}; {other_call}; called at {}", caller.place));
        let source = Error::new(kiln_driver::Error::refused("submit", refusal));
        GroupError::OtherCollective { rank: self.rank, call: Box::new((call, other_call)), source }
    }
}
