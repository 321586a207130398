//! Calls that are refused because another rank calls something else: such a call counts nothing and sends nothing. Where parts of a group were sent before, the communicator takes no more calls.

use super::call_text::called_at;
use super::{Bridge, Brought, Caller, Counts, Numbers, Place, rendezvous};
use crate::collective_part::Part;
use crate::compared_groups::{ComparedCall, GroupMisfit, GroupPart, group_key, packed};
use crate::error::{GroupError, Result};
use crate::rendezvous::PutAnswer;
use crate::transfer::Transfer;

/// The most bytes of what the store is told of a group before it is sent.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// The parts of a call, what each calls, and where each meets those of others.
#[derive(Clone, Copy)]
pub(super) struct WholeCall<'c> {
    pub(super) parts: &'c [Part],
    pub(super) called: &'c [String],
    pub(super) places: &'c [Place],
    pub(super) caller: Caller,
}

impl WholeCall<'_> {
    /// A send or a receive that is no part of a group.
    fn is_transfer_alone(&self) -> bool {
        matches!(self.places, [Place::Pair(_)])
    }

    fn has_transfers(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Pair(_)))
    }
}

impl Bridge {
    /// Has the store compare a group with sends before any part of it is sent.
    ///
    /// # Errors
    /// Another rank came first with something else; the store does not answer.
    pub(super) fn compare_group(&self, call: WholeCall<'_>) -> Result<PutAnswer> {
        let is_send = |place: &Place| matches!(place, Place::Pair(transfer) if transfer.from == self.rank);
        if call.parts.len() < 2 || !call.places.iter().any(is_send) {
            return Ok(PutAnswer::Done);
        }
        let one = |((part, called), place): ((&Part, &String), &Place)| {
            let Place::Pair(transfer) = place else { return None };
            let said = called_at(transfer, part, call.caller).to_string();
            let call = ComparedCall { called: called.clone(), said };
            Some(GroupPart { transfer: *transfer, call })
        };
        let parts: Vec<GroupPart> =
            call.parts.iter().zip(call.called).zip(call.places).filter_map(one).collect();
        let value = packed(&parts);
        // One of thousands of parts is compared as its parts come.
        if value.len() > MAX_GROUP_BYTES {
            return Ok(PutAnswer::Done);
        }
        let key = group_key(&self.name, self.rank);
        self.job.rendezvous.put_until(&key, &value, self.answer_end()).map_err(rendezvous)
    }

    /// The error of a group that the store has compared and refused.
    pub(super) fn misfit(&self, call: WholeCall<'_>, answer: &[u8]) -> Option<GroupError> {
        let GroupMisfit { part, other } = GroupMisfit::unpacked(answer)?;
        let transfers = call.parts.iter().zip(call.called).zip(call.places);
        let mut transfers = transfers.filter(|(_, place)| matches!(place, Place::Pair(_)));
        let ((part, called), place) = transfers.nth(part)?;
        Some(self.other_transfer((place, part, call.caller), (called, other)))
    }

    /// The error of a send that the store has refused, since a group of the receiver receives something else.
    pub(super) fn refused_send(
        &self,
        (place, part, caller): (&Place, &Part, Caller),
        (own, answer): (&str, &[u8]),
    ) -> Option<GroupError> {
        let (other, _) = ComparedCall::unpacked(answer)?;
        Some(self.other_transfer((place, part, caller), (own, other)))
    }

    /// The store has not taken what this rank brings to a part of a call.
    pub(super) fn not_taken(
        &self,
        counts: &mut Counts,
        (call, place, part, called): (WholeCall<'_>, &Place, &Part, &str),
        answer: &[u8],
        before: &Numbers,
    ) -> GroupError {
        let at = (part, call.caller);
        match place {
            Place::All(_) => {
                let told = self.refused_collective(place, at, answer).unwrap_or_else(|why| why);
                self.give_up(counts, (call.parts, call.places), &told);
                told
            }
            Place::Pair(_) => {
                let refused = self.refused_send((place, part, call.caller), (called, answer));
                let why = refused.unwrap_or_else(|| self.unread(call));
                self.refuse(counts, call, (before.clone(), &why));
                why
            }
        }
    }

    /// The error of a call that the store refused in words that are not read.
    pub(super) fn unread(&self, call: WholeCall<'_>) -> GroupError {
        let (id, place) = (self.id.short(), call.caller.place);
        let what = format!("rank 0 of the job does not take a call of communicator {id} at {place}");
        GroupError::Collective { what, next: super::NEXT }
    }

    fn other_transfer(
        &self,
        (place, part, caller): (&Place, &Part, Caller),
        (own, other): (&str, ComparedCall),
    ) -> GroupError {
        let other_rank = match place {
            Place::Pair(Transfer { from, to, .. }) if *from == self.rank => *to,
            Place::Pair(Transfer { from, .. }) => *from,
            Place::All(_) => self.rank,
        };
        let ComparedCall { called, said } = other;
        let other = Brought { called, said, bytes: Vec::new(), call: 0, pieces: 0 };
        self.disagreement((place, part, caller), other_rank, (own, other))
    }

    /// A part of a call was refused. What it leaves behind: nothing of a send or a receive alone, and of a group that others may have received a part of, that no more calls are taken.
    pub(super) fn refuse(
        &self,
        counts: &mut Counts,
        call: WholeCall<'_>,
        (before, why): (Numbers, &GroupError),
    ) {
        if call.is_transfer_alone() {
            counts.numbers = before;
        } else if call.has_transfers() {
            self.give_up_group(counts, call, why);
        }
    }

    /// A part of a group was refused, or has no room, after others may have received another part.
    pub(super) fn give_up_group(&self, counts: &mut Counts, call: WholeCall<'_>, why: &GroupError) {
        let what = format!("a group of calls was refused when parts of it were sent: {why}");
        self.say_given_up(counts, call.places, &what);
    }

    /// The bytes of a transfer are received: they go away in the store.
    pub(super) fn take(&self, place: &Place, brought: &Brought) -> Result<()> {
        if let Place::Pair(_) = place {
            let key = self.key(place, self.rank);
            (0..brought.pieces)
                .try_for_each(|at| self.job.rendezvous.remove(&format!("{key}/{at}")))
                .map_err(rendezvous)?;
        }
        Ok(())
    }
}
