//! A rank that ends its part of a communicator, or gives up a call of it, and where the others look for that.

use std::sync::{PoisonError, TryLockError};

use super::{Bridge, Counts};
use crate::transfer;

impl Bridge {
    /// This rank ends its part of the communicator as planned.
    pub(crate) fn end(&self) {
        self.say_end(&mut self.counts(), false);
    }

    /// The same because its device was shut down. False while another thread is in a call.
    pub(crate) fn end_shut_down(&self) -> bool {
        let mut counts = match self.counts.try_lock() {
            Ok(counts) => counts,
            Err(TryLockError::Poisoned(counts)) => PoisonError::into_inner(counts),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.say_end(&mut counts, true);
        true
    }

    fn say_end(&self, counts: &mut Counts, is_shut_down: bool) {
        if std::mem::replace(&mut counts.has_ended, true) {
            return;
        }
        let said = transfer::end_value(self.size, &counts.numbers.sent, is_shut_down);
        self.job.rendezvous.post(&self.end_key(self.rank), &said);
        self.say_departed("ended");
    }

    /// Has the others look which ranks have gone. Said after what they look for.
    pub(super) fn say_departed(&self, how: &str) {
        let said = format!("rank {} {how}", self.rank);
        self.job.rendezvous.post(&self.departed_key(), said.as_bytes());
    }

    pub(super) fn departed_key(&self) -> String {
        transfer::departed_key(&self.name)
    }

    pub(super) fn end_key(&self, rank: u32) -> String {
        transfer::end_key(&self.name, rank)
    }
}
