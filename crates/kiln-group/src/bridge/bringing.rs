//! What a rank brings to a call, as it is given to the store.

use std::collections::BTreeMap;

use kiln_operation::CollectiveKind;

use super::call_text::called_at;
use super::whole_values::part_of;
use super::{Bridge, CHUNK_BYTES, Counts, KEPT_CALLS, Numbers, Place, WholeCall, rendezvous};
use crate::collective_part::Part;
use crate::error::Result;
use crate::rendezvous::{PutAnswer, RendezvousError};
use crate::transfer::{self, Transfer};

impl Bridge {
    /// Where a part of the next call of this rank meets those of others.
    pub(super) fn next_place(&self, numbers: &mut Numbers, part: &Part) -> Place {
        let peer = part.collective.root_rank().unwrap_or(0);
        let next = |known: &mut BTreeMap<u32, u64>| {
            let number = known.entry(peer).or_default();
            *number += 1;
            *number - 1
        };
        match part.collective.kind() {
            CollectiveKind::Send => {
                Place::Pair(Transfer { from: self.rank, to: peer, number: next(&mut numbers.sent) })
            }
            CollectiveKind::Recv => {
                Place::Pair(Transfer { from: peer, to: self.rank, number: next(&mut numbers.received) })
            }
            _ => {
                numbers.collectives += 1;
                Place::All(numbers.collectives - 1)
            }
        }
    }

    /// Has the store compare a group, and makes place for what this rank brings.
    pub(super) fn begin_exchange(
        &self,
        counts: &mut Counts,
        call: WholeCall<'_>,
        before: &Numbers,
    ) -> Result<()> {
        match self.compare_group(call)? {
            PutAnswer::Done => {}
            PutAnswer::Refused(answer) => {
                counts.numbers = before.clone();
                return Err(self.misfit(call, &answer).unwrap_or_else(|| self.unread(call)));
            }
            PutAnswer::Silent => {
                let Some((place, part)) = call.places.iter().zip(call.parts).next() else { return Ok(()) };
                let why = self.silent_store(place, (part, call.caller));
                self.give_up(counts, (call.parts, call.places), &why);
                return Err(why);
            }
        }
        if call.parts.iter().any(|part| !part.is_pairwise()) {
            counts.given.push_back(Vec::new());
        }
        if counts.given.len() > KEPT_CALLS {
            for old in counts.given.pop_front().unwrap_or_default() {
                self.job.rendezvous.post_removal(&old);
            }
        }
        Ok(())
    }

    /// Gives what this rank brings to a part of a call to the store.
    pub(super) fn bring(
        &self,
        counts: &mut Counts,
        (call, at): (WholeCall<'_>, usize),
        bytes: &[u8],
        before: &Numbers,
    ) -> Result<()> {
        let caller = call.caller;
        let all = call.parts.iter().zip(call.called).zip(call.places);
        let Some(((part, called), place)) = all.into_iter().nth(at) else { return Ok(()) };
        let said = match place {
            Place::All(_) => caller.place.to_string(),
            Place::Pair(Transfer { from, .. }) if *from != self.rank => return Ok(()),
            Place::Pair(transfer) => called_at(transfer, part, caller).to_string(),
        };
        let head = transfer::Brought { called, said: &said, call: caller.number, bytes: &[] }.packed();
        let key = self.key(place, self.rank);
        let chunks = (head.len() + bytes.len()).div_ceil(CHUNK_BYTES).max(1);
        for at in 0..chunks {
            let [first, second] = part_of(&head, bytes, at * CHUNK_BYTES..(at + 1) * CHUNK_BYTES);
            let value = [&(chunks as u64).to_le_bytes()[..], first, second].concat();
            let piece = format!("{key}/{at}");
            let put = self.job.rendezvous.put_until(&piece, &value, self.answer_end());
            if let (Place::All(_), Some(given)) = (place, counts.given.back_mut()) {
                given.push(piece);
            }
            match put {
                Err(RendezvousError::Full { limit, .. }) => {
                    let why = self.no_room(place, part, (&key, at, limit));
                    if call.parts.len() > 1 {
                        self.refuse(counts, call, (before.clone(), &why));
                    }
                    return Err(why);
                }
                Ok(PutAnswer::Silent) => {
                    let why = self.silent_store(place, (part, caller));
                    self.give_up(counts, (call.parts, call.places), &why);
                    return Err(why);
                }
                Ok(PutAnswer::Refused(answer)) => {
                    return Err(self.not_taken(counts, (call, place, part, called), &answer, before));
                }
                put => drop(put.map_err(rendezvous)?),
            }
        }
        Ok(())
    }
}
