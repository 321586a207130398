//! Ranks that have gone in order, and what this rank was told of them.

use std::time::Instant;

use super::message::Message;
use super::seen::EndingLosses;
use super::told_departures::ToldDeparture;
use super::{Rendezvous, Result};

impl Rendezvous {
    /// Ranks that have left as planned, the first one first.
    pub(crate) fn left_ranks(&self) -> Vec<u32> {
        self.connection.left()
    }

    /// As [`get_while`](Self::get_while); none also once ranks have left that are not among these.
    pub(crate) fn get_while_here(
        &self,
        rank: u32,
        (name, key): (&str, &str),
        end: Instant,
        losses: EndingLosses<'_>,
        left: &[u32],
    ) -> Result<Option<Vec<u8>>> {
        let make = |id| Message::GetOf { id, rank, key: key.into() };
        let answer = self.connection.request_while_here(make, end, losses, left)?;
        self.value_of(rank, name, losses, answer)
    }

    /// This rank was told that another one has left the job, or has ended its part of a communicator.
    pub(crate) fn say_told(&self, of: u32, communicator: Option<&str>) {
        let communicator = communicator.unwrap_or_default().to_owned();
        self.connection.say_told(ToldDeparture { of, communicator });
    }

    /// What a rank was told first of ranks that have gone, as far as this one knows: of ranks that are lost, and of rank 0.
    pub(crate) fn told_departure(&self, rank: u32) -> Option<ToldDeparture> {
        self.connection.told_departure(rank)
    }
}
