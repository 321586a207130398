//! Ranks that have gone in order or are late, and what this rank was told of them.

use std::time::{Duration, Instant};

use super::error::RendezvousError;
use super::keys::check;
use super::message::Message;
use super::seen::EndingLosses;
use super::told_absences::{ToldAbsence, WhyAbsent};
use super::{Rendezvous, Result, SILENT_STORE};

/// How long the store may take to answer what it always can answer.
const STORE_LIMIT: Duration = Duration::from_millis(500);

/// What the store answers to a value.
pub(crate) enum PutAnswer {
    Done,
    /// It has not taken the value, and says why.
    Refused(Vec<u8>),
    /// It does not answer.
    Silent,
}

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

    /// Puts a value that the store may have something to say about.
    pub(crate) fn put_until(&self, key: &str, value: &[u8], end: Instant) -> Result<PutAnswer> {
        check(key, value)?;
        let make = |id| Message::Put { id, key: key.into(), value: value.into() };
        match self.connection.request(make, end, EndingLosses::None)? {
            Some(Message::Full { limit, .. }) => Err(RendezvousError::Full { key: key.into(), limit }),
            Some(Message::Value { value, .. }) => Ok(PutAnswer::Refused(value)),
            Some(_) => Ok(PutAnswer::Done),
            None => Ok(PutAnswer::Silent),
        }
    }

    /// Removes a value without waiting until it is gone.
    pub(crate) fn post_removal(&self, key: &str) {
        self.connection.post(|id| Message::Remove { id, key: key.into() });
    }

    /// Whether the store answers a question that it always can answer. It does not while the process of rank 0 is stopped.
    ///
    /// # Errors
    /// The store is lost.
    pub(crate) fn store_answers(&self) -> Result<bool> {
        let end = Instant::now() + STORE_LIMIT;
        let answer = self.connection.request(|id| Message::WhoIsMissing { id }, end, EndingLosses::None)?;
        Ok(answer.is_some())
    }

    /// The error of a value that has not come: that of the store, if it does not answer.
    pub(super) fn no_value(&self, key: String) -> RendezvousError {
        match self.store_answers() {
            Ok(true) => RendezvousError::NoValue { key, waited: self.timeout },
            Ok(false) => RendezvousError::StoreLost { cause: SILENT_STORE.into() },
            Err(error) => error,
        }
    }

    /// This rank was told that others do not come. What it is told of itself is no reason.
    pub(crate) fn say_told(&self, mut ranks: Vec<u32>, why: WhyAbsent) {
        ranks.retain(|rank| *rank != self.rank);
        if !ranks.is_empty() {
            self.connection.say_told(ToldAbsence { ranks, why });
        }
    }

    /// Ranks have come to what this one was in. Those of them that were late are so no more.
    pub(crate) fn say_came(&self, has_come: impl Fn(u32) -> bool) {
        if let Some(late) = self.told_absence(self.rank).filter(ToldAbsence::is_late) {
            let come = late.ranks.into_iter().filter(|rank| has_come(*rank)).collect();
            self.say_told(come, WhyAbsent::HasCome);
        }
    }

    /// What a rank was told first of ranks that do not come, as far as this one knows: this rank, those that are lost or have left, and rank 0.
    pub(crate) fn told_absence(&self, rank: u32) -> Option<ToldAbsence> {
        self.connection.told_absence(rank)
    }
}
