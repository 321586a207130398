//! Collectives of several processes that a rank wants to give up because others do not come: the store decides whether they are done or given up, once for all ranks.
//!
//! A collective is done if all ranks have come to it before one gives it up. A rank that wants to give up is told so then, and goes on with it. Otherwise it is given up: what the rank has brought is taken
//! back and what others bring later is not taken, so no rank has the values of all.
//!
//! This part is pure.

use std::collections::BTreeMap;

use crate::transfer;

/// What stands in the key under which a rank says that it wants to give up.
const WANTS_END: &str = "wants end/";

/// A rank of a communicator wants to give up some collectives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WantedEnd {
    pub(crate) rank: u32,
    /// The number of ranks.
    pub(crate) size: u32,
    pub(crate) collectives: Vec<u64>,
    /// What the others are told.
    pub(crate) said: Vec<u8>,
}

/// The collectives that were given up, and the rank that did it first, of all communicators of a job.
#[derive(Debug, Default)]
pub(crate) struct GivenUpCollectives {
    communicators: BTreeMap<String, BTreeMap<u64, u32>>,
}

impl WantedEnd {
    /// Where the rank says it.
    pub(crate) fn key(communicator: &str, rank: u32) -> String {
        format!("{}{WANTS_END}{rank}", transfer::collective_keys(communicator))
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let count = self.collectives.len() as u64;
        let numbers = [u64::from(self.size), count].into_iter().chain(self.collectives.iter().copied());
        numbers.flat_map(u64::to_le_bytes).chain(self.said.iter().copied()).collect()
    }

    /// The communicator and what the rank wants; none if it says something else.
    pub(crate) fn parse<'k>(key: &'k str, value: &[u8]) -> Option<(&'k str, Self)> {
        let (communicator, rank) = key.rsplit_once(WANTS_END)?;
        let communicator = communicator.strip_suffix("/all/").filter(|name| transfer::is_exchange(name))?;
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let (size, rest) = value.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let bytes = usize::try_from(number(count)).ok()?.checked_mul(8)?;
        let (numbers, said) = rest.split_at_checked(bytes)?;
        let collectives = numbers.as_chunks().0.iter().map(number).collect();
        let (rank, size) = (rank.parse().ok()?, number(size).try_into().ok()?);
        Some((communicator, Self { rank, size, collectives, said: said.to_vec() }))
    }
}

impl GivenUpCollectives {
    /// A rank wants to give up. Whether it does: not where all ranks have come to all of it.
    pub(crate) fn decide(
        &mut self,
        communicator: &str,
        wanted: &WantedEnd,
        is_there: impl Fn(&str) -> bool,
    ) -> bool {
        let has_come = |(number, rank): (u64, u32)| is_there(&first_piece_key(communicator, number, rank));
        let mut all =
            wanted.collectives.iter().flat_map(|number| (0..wanted.size).map(|rank| (*number, rank)));
        if all.all(has_come) {
            return false;
        }
        let known = self.communicators.entry(communicator.to_owned()).or_default();
        for number in &wanted.collectives {
            known.entry(*number).or_insert(wanted.rank);
        }
        true
    }

    /// The rank that gave up the collective to which this key is that of the first that a rank brings.
    pub(crate) fn given_up_by(&self, key: &str) -> Option<u32> {
        let (communicator, number) = collective_of_first_piece(key)?;
        self.communicators.get(communicator)?.get(&number).copied()
    }

    /// The communicators whose names begin so have ended.
    pub(crate) fn forget(&mut self, prefix: &str) {
        self.communicators.retain(|name, _| !transfer::collective_keys(name).starts_with(prefix));
    }
}

/// How the keys begin of what a rank brings to a collective.
pub(crate) fn brought_keys(communicator: &str, number: u64, rank: u32) -> String {
    format!("{}{number}/{rank}/", transfer::collective_keys(communicator))
}

fn first_piece_key(communicator: &str, number: u64, rank: u32) -> String {
    format!("{}0", brought_keys(communicator, number, rank))
}

fn collective_of_first_piece(key: &str) -> Option<(&str, u64)> {
    let (before, rank) = key.strip_suffix("/0")?.rsplit_once('/')?;
    rank.parse::<u32>().ok()?;
    let (communicator, number) = before.rsplit_once('/')?;
    Some((communicator.strip_suffix("/all")?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "kiln/exchange/ab";

    fn wanted(rank: u32, collectives: &[u64]) -> WantedEnd {
        WantedEnd { rank, size: 2, collectives: collectives.to_vec(), said: b"late".to_vec() }
    }

    #[test]
    fn a_collective_to_which_all_have_come_is_not_given_up() {
        let mut given_up = GivenUpCollectives::default();
        let here = |known: &str| {
            [(3, 0), (3, 1), (4, 0)].iter().any(|(n, r)| first_piece_key(NAME, *n, *r) == known)
        };
        assert!(!given_up.decide(NAME, &wanted(0, &[3]), here));
        assert_eq!(given_up.given_up_by(&first_piece_key(NAME, 3, 1)), None);
        // One of a group that not all have come to ends all of it.
        assert!(given_up.decide(NAME, &wanted(0, &[3, 4]), here));
        assert!(given_up.decide(NAME, &wanted(1, &[4]), here));
        for number in [3, 4] {
            assert_eq!(given_up.given_up_by(&first_piece_key(NAME, number, 1)), Some(0));
        }
        assert_eq!(given_up.given_up_by(&first_piece_key(NAME, 5, 1)), None);
        assert_eq!(given_up.given_up_by(&format!("{}1", brought_keys(NAME, 3, 1))), None);
        given_up.forget(&brought_keys(NAME, 3, 0));
        assert_eq!(given_up.communicators.len(), 1);
        given_up.forget(&transfer::collective_keys(NAME));
        assert!(given_up.communicators.is_empty());
    }

    #[test]
    fn what_a_rank_wants_arrives_as_it_was() {
        let wanted = wanted(7, &[3, 4]);
        let (key, value) = (WantedEnd::key(NAME, 7), wanted.value());
        assert_eq!(WantedEnd::parse(&key, &value), Some((NAME, wanted)));
        assert_eq!(WantedEnd::parse(&key, &value[..31]), None);
        assert_eq!(WantedEnd::parse(&first_piece_key(NAME, 3, 7), &value), None);
    }
}
