//! Sends and receives between ranks in several processes, as they stand in the store of the job.
//!
//! A send is there until the other rank receives it. Each rank says when it has ended its part of a communicator, and how much it has sent; a send that is still there when both
//! ranks have ended is one that was never received.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

use kiln_operation::{Collective, CollectiveKind};

/// How the keys of exchanges begin.
const EXCHANGES: &str = "kiln/exchange/";
/// What to do about a transfer that one of two ranks has called alone.
pub(crate) const NEXT: &str =
    "let each send have a receive on the other rank, and each receive a send, in the same order";

/// The way from one rank to another, of which the transfers are counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) number: u64,
}

/// A send or a receive of a program.
pub(crate) struct TransferCall<'a> {
    pub(crate) transfer: Transfer,
    pub(crate) collective: &'a Collective,
    /// Elements.
    pub(crate) count: u64,
    pub(crate) place: &'static Location<'static>,
}

impl Transfer {
    /// Where it stands among the exchanges of a communicator, without its pieces.
    pub(crate) fn key(&self, communicator: &str) -> String {
        let Self { from, to, number } = self;
        format!("{communicator}/{from} to {to}/{number}")
    }

    /// The transfer whose first piece has this key, and the name of its communicator.
    pub(crate) fn of_first_piece(key: &str) -> Option<(&str, Self)> {
        Self::parse(key.strip_suffix("/0")?)
    }

    /// The transfer that stands under this key, and the name of its communicator.
    pub(crate) fn parse(key: &str) -> Option<(&str, Self)> {
        let (before, number) = key.rsplit_once('/')?;
        let (communicator, ranks) = before.rsplit_once('/')?;
        let (from, to) = ranks.split_once(" to ")?;
        let transfer = Self { from: from.parse().ok()?, to: to.parse().ok()?, number: number.parse().ok()? };
        communicator.starts_with(EXCHANGES).then_some((communicator, transfer))
    }
}

impl fmt::Display for TransferCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transfer: Transfer { from, to, number }, collective, count, place } = self;
        let (name, element) = (collective.name(), collective.element());
        let bytes = count.saturating_mul(element.bytes());
        write!(
            f,
            "{name} of {bytes} bytes ({count} {element}) from rank {from} to rank {to}, transfer {number} between the two, at {place}"
        )
    }
}

impl TransferCall<'_> {
    /// What is said of one that meets none: it was never received, or never sent, and why.
    pub(crate) fn unmatched(&self, why: &str) -> String {
        let what = if self.collective.kind() == CollectiveKind::Send { "received" } else { "sent" };
        format!("{self} was never {what}: {why}")
    }
}

/// The name of a communicator among the exchanges of a job.
pub(crate) fn communicator_name(id: &str) -> String {
    format!("{EXCHANGES}{}", id.trim_end_matches('0'))
}

/// Whether a key is that of an exchange.
pub(crate) fn is_exchange(key: &str) -> bool {
    key.starts_with(EXCHANGES)
}

/// How the keys of what ranks bring to the collectives of a communicator begin.
pub(crate) fn collective_keys(communicator: &str) -> String {
    format!("{communicator}/all/")
}

/// Where a rank says which call of a communicator it gave up, and why.
pub(crate) fn given_up_key(communicator: &str, rank: u32) -> String {
    format!("{}gave up/{rank}", collective_keys(communicator))
}

/// The communicator of which a rank says with this value that it has ended its part, and its size.
pub(crate) fn ended<'k>(key: &'k str, value: &[u8]) -> Option<(&'k str, u32)> {
    let (communicator, rank) = key.rsplit_once("/end/").filter(|_| is_exchange(key))?;
    rank.parse::<u32>().ok()?;
    Some((communicator, u64::from_le_bytes(*value.first_chunk()?).try_into().ok()?))
}

/// Where a rank says that it has ended its part of a communicator.
pub(crate) fn end_key(communicator: &str, rank: u32) -> String {
    format!("{communicator}/end/{rank}")
}

/// What it says then: of how many ranks it was one, how much it has sent to which rank, and at the end whether its device was shut down.
pub(crate) fn end_value(size: u32, sent: &BTreeMap<u32, u64>, is_shut_down: bool) -> Vec<u8> {
    let pairs = sent.iter().flat_map(|(to, count)| [u64::from(*to), *count]);
    let numbers = std::iter::once(u64::from(size)).chain(pairs).flat_map(u64::to_le_bytes);
    numbers.chain(is_shut_down.then_some(1)).collect()
}

/// Whether a rank that has ended says that its device was shut down.
pub(crate) fn is_shut_down(end: &[u8]) -> bool {
    end.len() % 8 == 1
}

/// Where the last rank that gave up a call of a communicator, or ended its part of it, says that.
pub(crate) fn departed_key(communicator: &str) -> String {
    format!("{communicator}/departed")
}

/// How much a rank that has ended had sent to this one.
pub(crate) fn sent_to(rank: u32, end: &[u8]) -> u64 {
    let (numbers, _) = end.get(8..).unwrap_or_default().as_chunks::<16>();
    let pair = |pair: &[u8; 16]| {
        let (to, count) = pair.split_first_chunk::<8>()?;
        Some((u64::from_le_bytes(*to), u64::from_le_bytes(count.try_into().ok()?)))
    };
    let found = numbers.iter().filter_map(pair).find(|(to, _)| *to == u64::from(rank));
    found.map_or(0, |(_, count)| count)
}

/// What was sent and never received, in words, of the values that the ranks of a job have left behind.
pub(crate) fn unreceived<'v>(
    values: impl Iterator<Item = (&'v str, &'v [u8])>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<String> {
    let left = values.filter_map(|(key, value)| {
        let (communicator, Transfer { from, to, number }) = Transfer::of_first_piece(key)?;
        let have_ended = [from, to].iter().all(|rank| is_there(&end_key(communicator, *rank)));
        // A send that was refused says nothing.
        let (_, said) = have_ended.then(|| texts_of(value))?.filter(|(_, said)| !said.is_empty())?;
        Some((
            communicator,
            from,
            to,
            number,
            format!("{said} was never received: rank {to} has ended; {NEXT}"),
        ))
    });
    let mut left: Vec<_> = left.collect();
    left.sort();
    left.into_iter().map(|(.., text)| text).collect()
}

/// What a rank brings to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Brought<'m> {
    /// What all ranks must call alike.
    pub(crate) called: &'m str,
    /// What is said of the call.
    pub(crate) said: &'m str,
    /// Which call of its rank it is.
    pub(crate) call: u64,
    pub(crate) bytes: &'m [u8],
}

impl<'m> Brought<'m> {
    /// As the store is given it.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let Self { called, said, call, bytes } = self;
        let length = |text: &str| (text.len() as u64).to_le_bytes();
        let texts = [&length(called)[..], called.as_bytes(), &length(said), said.as_bytes()];
        [&texts.concat()[..], &call.to_le_bytes(), bytes].concat()
    }

    pub(crate) fn unpacked(message: &'m [u8]) -> Option<Self> {
        let (called, rest) = text(message)?;
        let (said, rest) = text(rest)?;
        let (call, bytes) = rest.split_first_chunk()?;
        Some(Self { called, said, call: u64::from_le_bytes(*call), bytes })
    }
}

/// What is called and what is said of it, of the first piece of a message behind the number of pieces.
pub(crate) fn texts_of(piece: &[u8]) -> Option<(&str, &str)> {
    let (called, rest) = text(piece.split_first_chunk::<8>()?.1)?;
    Some((called, text(rest)?.0))
}

/// A text with its length before it, and what is behind.
pub(crate) fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(key: &str) -> (String, Vec<u8>) {
        let message = Brought { called: "a transfer", said: "a send", call: 3, bytes: &[7; 9] };
        (key.to_owned(), [&1_u64.to_le_bytes()[..], &message.packed()].concat())
    }

    #[test]
    fn what_both_ranks_have_left_behind_was_never_received() {
        let name = communicator_name("ab0100");
        let key = |from, to, number| format!("{}/0", Transfer { from, to, number }.key(&name));
        let values =
            [left(&key(2, 1, 10)), left(&key(2, 1, 9)), left(&key(0, 1, 0)), left("kiln/other/2 to 1/0/0")];
        let is_there = |known: &str| [end_key(&name, 1), end_key(&name, 2)].iter().any(|key| key == known);
        let values = values.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        let found = unreceived(values, is_there);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a send was never received: rank 1 has ended; "), "{found:?}");
    }

    #[test]
    fn keys_and_messages_arrive_as_they_were() {
        let transfer = Transfer { from: 3, to: 14, number: 159 };
        let key = transfer.key("kiln/exchange/ab");
        assert_eq!(Transfer::of_first_piece(&format!("{key}/0")), Some(("kiln/exchange/ab", transfer)));
        for other in [key.clone(), format!("{key}/1"), "kiln/exchange/ab/3/0".into(), "a/1 to 2/0/0".into()] {
            assert_eq!(Transfer::of_first_piece(&other), None, "{other}");
        }
        let brought = Brought { called: "called", said: "said", call: 7, bytes: b"bytes" };
        let message = brought.packed();
        assert_eq!(Brought::unpacked(&message), Some(brought));
        for end in 0..message.len() - 5 {
            assert_eq!(Brought::unpacked(&message[..end]), None);
        }
        let end = end_value(9, &BTreeMap::from([(0, 3), (7, 2)]), false);
        assert_eq!(ended(&end_key("kiln/exchange/ab", 4), &end), Some(("kiln/exchange/ab", 9)));
        assert_eq!(ended("a/end/4", &end), None);
        let shut_down = end_value(9, &BTreeMap::from([(0, 3), (7, 2)]), true);
        assert_eq!(ended(&end_key("kiln/exchange/ab", 4), &shut_down), Some(("kiln/exchange/ab", 9)));
        for end in [&end, &shut_down] {
            assert_eq!([0, 7, 5].map(|rank| sent_to(rank, end)), [3, 2, 0]);
        }
        assert!(is_shut_down(&shut_down) && !is_shut_down(&end));
    }
}
