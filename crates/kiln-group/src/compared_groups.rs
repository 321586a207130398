//! Groups of sends and receives between ranks in several processes: the store compares every part of a group with what other ranks have called before any part of it is sent.
//!
//! A send does not wait for its receive, so a receive alone is compared where it is received, and changes nothing if it is refused. A group that is refused after its sends were received would have to
//! take them back. The store therefore keeps what groups call until both ranks have come to it, and of two calls that do not meet it refuses the one that comes second.
//!
//! This part is pure.

use std::collections::BTreeMap;

use crate::transfer::{self, Transfer, text};

/// What stands in the key under which a rank says what a group calls.
const GROUP: &str = "/group/";

/// A send or a receive of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupPart {
    pub(crate) transfer: Transfer,
    pub(crate) call: ComparedCall,
}

/// What a rank calls, and what is said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ComparedCall {
    pub(crate) called: String,
    pub(crate) said: String,
}

/// A part of a group that does not meet what another rank calls, by its place in the group, and that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupMisfit {
    pub(crate) part: usize,
    pub(crate) other: ComparedCall,
}

/// What groups call that other ranks have not come to, of all communicators of a job.
#[derive(Debug, Default)]
pub(crate) struct ComparedGroups {
    communicators: BTreeMap<String, BTreeMap<(u32, u32, u64), TwoSides>>,
}

/// The two sides of a transfer, as groups call them.
#[derive(Debug, Default)]
struct TwoSides {
    /// Until its bytes are there.
    send: Option<ComparedCall>,
    receive: Option<ComparedCall>,
}

/// Where a rank says what a group calls.
pub(crate) fn group_key(communicator: &str, rank: u32) -> String {
    format!("{communicator}{GROUP}{rank}")
}

/// The communicator of a group and the rank that calls it; none if a key says something else.
pub(crate) fn group_of(key: &str) -> Option<(&str, u32)> {
    let (communicator, rank) = key.rsplit_once(GROUP)?;
    Some((communicator, rank.parse().ok()?)).filter(|(communicator, _)| transfer::is_exchange(communicator))
}

/// The parts of a group, as the store is told.
pub(crate) fn packed(parts: &[GroupPart]) -> Vec<u8> {
    let one = |GroupPart { transfer: Transfer { from, to, number }, call }: &GroupPart| {
        let numbers = [u64::from(*from), u64::from(*to), *number].map(u64::to_le_bytes).concat();
        [numbers, call.packed()].concat()
    };
    parts.iter().flat_map(one).collect()
}

/// Reads what [`packed`] wrote, as far as it is that.
fn unpacked(mut bytes: &[u8]) -> Vec<GroupPart> {
    let mut parts = Vec::new();
    while let Some((part, rest)) = GroupPart::unpacked(bytes) {
        parts.push(part);
        bytes = rest;
    }
    parts
}

impl GroupPart {
    fn unpacked(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let (from, rest) = bytes.split_first_chunk()?;
        let (to, rest) = rest.split_first_chunk()?;
        let (of_pair, rest) = rest.split_first_chunk()?;
        let (from, to) = (number(from).try_into().ok()?, number(to).try_into().ok()?);
        let (call, rest) = ComparedCall::unpacked(rest)?;
        Some((Self { transfer: Transfer { from, to, number: number(of_pair) }, call }, rest))
    }
}

impl ComparedCall {
    pub(crate) fn packed(&self) -> Vec<u8> {
        let one = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        [one(&self.called), one(&self.said)].concat()
    }

    pub(crate) fn unpacked(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (called, rest) = text(bytes)?;
        let (said, rest) = text(rest)?;
        Some((Self { called: called.to_owned(), said: said.to_owned() }, rest))
    }
}

impl GroupMisfit {
    pub(crate) fn packed(&self) -> Vec<u8> {
        [(self.part as u64).to_le_bytes().to_vec(), self.other.packed()].concat()
    }

    pub(crate) fn unpacked(bytes: &[u8]) -> Option<Self> {
        let (part, rest) = bytes.split_first_chunk()?;
        let part = usize::try_from(u64::from_le_bytes(*part)).ok()?;
        Some(Self { part, other: ComparedCall::unpacked(rest)?.0 })
    }
}

impl ComparedGroups {
    /// A rank calls a group, whose parts are compared with what others have sent and with other groups. If all of them fit, they are kept; otherwise nothing is.
    pub(crate) fn call(
        &mut self,
        (communicator, rank): (&str, u32),
        parts: &[u8],
        sent: impl Fn(&Transfer) -> Option<ComparedCall>,
    ) -> Option<GroupMisfit> {
        let parts = unpacked(parts);
        let known = self.communicators.get(communicator);
        for (at, GroupPart { transfer, call }) in parts.iter().enumerate() {
            let sides = known.and_then(|known| known.get(&sides_of(transfer)));
            let other = match transfer.from == rank {
                true => sides.and_then(|sides| sides.receive.clone()),
                false => sides.and_then(|sides| sides.send.clone()).or_else(|| sent(transfer)),
            };
            if let Some(other) = other.filter(|other| other.called != call.called) {
                return Some(GroupMisfit { part: at, other });
            }
        }
        for GroupPart { transfer, call } in parts {
            let sides = self.communicators.entry(communicator.to_owned()).or_default();
            let sides = sides.entry(sides_of(&transfer)).or_default();
            let side = if transfer.from == rank { &mut sides.send } else { &mut sides.receive };
            *side = Some(call);
        }
        None
    }

    /// A rank sends something. What a group of the other rank receives instead, if that is something else.
    pub(crate) fn sent(
        &mut self,
        communicator: &str,
        transfer: &Transfer,
        called: &str,
    ) -> Option<ComparedCall> {
        let sides = self.communicators.get_mut(communicator)?.get_mut(&sides_of(transfer))?;
        let other = sides.receive.clone().filter(|receive| receive.called != called);
        if other.is_none() {
            sides.send = None;
        }
        other
    }

    /// Both ranks have come to a transfer.
    pub(crate) fn received(&mut self, communicator: &str, transfer: &Transfer) {
        if let Some(known) = self.communicators.get_mut(communicator) {
            known.remove(&sides_of(transfer));
            if known.is_empty() {
                self.communicators.remove(communicator);
            }
        }
    }

    /// The communicators whose names begin so have ended.
    pub(crate) fn forget(&mut self, prefix: &str) {
        self.communicators.retain(|name, _| !format!("{name}/").starts_with(prefix));
    }
}

fn sides_of(Transfer { from, to, number }: &Transfer) -> (u32, u32, u64) {
    (*from, *to, *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "kiln/exchange/ab";

    fn part(from: u32, to: u32, number: u64, count: u32) -> GroupPart {
        let call = ComparedCall { called: format!("{count} elements"), said: format!("by {from}") };
        GroupPart { transfer: Transfer { from, to, number }, call }
    }

    fn swap(sent: u32, received: u32, rank: u32) -> Vec<u8> {
        packed(&[part(rank, 1 - rank, 0, sent), part(1 - rank, rank, 0, received)])
    }

    #[test]
    fn of_two_groups_that_do_not_fit_the_second_is_refused_and_the_right_one_is_taken() {
        let mut groups = ComparedGroups::default();
        assert_eq!(groups.call((NAME, 0), &swap(8, 8, 0), |_| None), None);
        let misfit = groups.call((NAME, 1), &swap(8, 9, 1), |_| None).map(|misfit| misfit.part);
        assert_eq!(misfit, Some(1), "its receive");
        let misfit = groups.call((NAME, 1), &swap(7, 8, 1), |_| None).map(|misfit| misfit.part);
        assert_eq!(misfit, Some(0), "its send");
        assert_eq!(groups.call((NAME, 1), &swap(8, 8, 1), |_| None), None);
        for transfer in [part(0, 1, 0, 8), part(1, 0, 0, 8)].map(|part| part.transfer) {
            assert_eq!(groups.sent(NAME, &transfer, "8 elements"), None);
            groups.received(NAME, &transfer);
        }
        assert!(groups.communicators.is_empty());
    }

    #[test]
    fn a_group_is_compared_with_sends_before_it_and_after_it() {
        let mut groups = ComparedGroups::default();
        let sent = |_: &Transfer| Some(part(0, 1, 0, 8).call);
        assert_eq!(groups.call((NAME, 1), &swap(8, 9, 1), sent).map(|misfit| misfit.part), Some(1));
        assert_eq!(groups.call((NAME, 1), &swap(8, 9, 1), |_| None), None);
        let transfer = part(0, 1, 0, 8).transfer;
        let other = groups.sent(NAME, &transfer, "8 elements").map(|other| other.called);
        assert_eq!(other.as_deref(), Some("9 elements"));
        assert_eq!(groups.sent(NAME, &transfer, "9 elements"), None);
        groups.forget("kiln/exchange/abc/");
        assert_eq!(groups.communicators.len(), 1);
        groups.forget("kiln/exchange/ab/");
        assert!(groups.communicators.is_empty());
    }

    #[test]
    fn what_a_rank_says_of_a_group_arrives_as_it_was() {
        assert_eq!(group_of(&group_key(NAME, 3)), Some((NAME, 3)));
        assert_eq!(group_of("other/group/3"), None);
        assert_eq!(group_of(&Transfer { from: 0, to: 1, number: 2 }.key(NAME)), None);
        let parts = [part(0, 1, 0, 8), part(3, 0, 7, 9)];
        assert_eq!(unpacked(&packed(&parts)), parts);
        let misfit = GroupMisfit { part: 2, other: parts[1].call.clone() };
        let bytes = misfit.packed();
        assert_eq!(GroupMisfit::unpacked(&bytes), Some(misfit));
        for end in 0..bytes.len() {
            assert_eq!(GroupMisfit::unpacked(&bytes[..end]), None);
        }
    }
}
