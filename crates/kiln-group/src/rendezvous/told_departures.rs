//! What ranks were told first of others that have gone in order. A rank that ends without leaving after that ends because of it, and ranks that come later are told of the one that had gone.

use std::collections::BTreeMap;

/// A rank of the job that has gone in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ToldDeparture {
    pub(crate) of: u32,
    /// The communicator of which it has ended its part, in short; none where it has left the job.
    pub(crate) communicator: String,
}

impl ToldDeparture {
    /// As a message has it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [&self.of.to_le_bytes()[..], self.communicator.as_bytes()].concat()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (of, communicator) = bytes.split_first_chunk()?;
        let communicator = String::from_utf8(communicator.to_vec()).ok()?;
        Some(Self { of: u32::from_le_bytes(*of), communicator })
    }

    /// Whether it has left the job.
    pub(crate) fn is_of_job(&self) -> bool {
        self.communicator.is_empty()
    }
}

/// By the rank that was told.
#[derive(Default, Debug)]
pub(super) struct ToldDepartures {
    first: BTreeMap<u32, ToldDeparture>,
}

impl ToldDepartures {
    /// A rank was told of one. Whether that is the first.
    pub(super) fn note(&mut self, rank: u32, departure: ToldDeparture) -> bool {
        let is_first = !self.first.contains_key(&rank);
        self.first.entry(rank).or_insert(departure);
        is_first
    }

    pub(super) fn of(&self, rank: u32) -> Option<&ToldDeparture> {
        self.first.get(&rank)
    }

    /// A rank has left, or has joined again.
    pub(super) fn forget(&mut self, rank: u32) {
        self.first.remove(&rank);
    }

    /// A rank that has joined again is not gone.
    pub(super) fn forget_of(&mut self, rank: u32) {
        self.first.retain(|_, departure| departure.of != rank);
    }

    /// What was seen of a rank that is lost, and what it was told before.
    pub(super) fn cause(&self, rank: u32, cause: String) -> String {
        match self.of(rank) {
            Some(told) if told.is_of_job() => {
                format!("{cause}, after it was told that rank {} had left the job", told.of)
            }
            Some(ToldDeparture { of, communicator }) => format!(
                "{cause}, after it was told that rank {of} of the job had ended its part of communicator {communicator}"
            ),
            None => cause,
        }
    }
}
