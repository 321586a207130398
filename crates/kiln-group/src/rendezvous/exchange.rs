//! Exchanges and barriers: every rank gives a value and waits for those of all others.

use std::time::{Duration, Instant};

use super::error::RendezvousError;
use super::keys::{check, waiting_key};
use super::message::Message;
use super::{Rendezvous, Result};

/// How long a rank waits in an exchange before it says where it waits.
const SILENT_WAIT: Duration = Duration::from_millis(100);

impl Rendezvous {
    /// Gives a value and gets those of all ranks, by rank; none for ranks whose loss was acknowledged, by [`acknowledge_losses`](Self::acknowledge_losses) or by a communicator of the job that was [rebuilt](crate::DeviceCommunicator::rebuild). All ranks must use the same name, and each
    /// name once.
    ///
    /// # Errors
    /// A name that this rank has used; a rank that did not come, and where it waits instead; one that has left the job in order; a value or a name that is too large; a rank is lost, unless that was acknowledged or all ranks had come
    /// before; the store is full or lost.
    pub fn exchange(&self, name: &str, value: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let key = |rank: u32| format!("{name}/{rank}");
        self.names.check(name)?;
        check(&key(self.size), value)?;
        self.put(&key(self.rank), value)?;
        let absent = self.connection.acknowledged();
        let (mut values, end) = (Vec::new(), self.deadline());
        for rank in 0..self.size {
            values.push(match absent.contains(&rank) {
                true => None,
                false => match self.get_of(rank, (name, &key(rank)), end) {
                    // Nothing more is waited for after a loss. What ranks gave before it counts, also what the lost rank gave.
                    Err(RendezvousError::RankLost { rank: lost, cause }) => {
                        let given = self.last_word(rank, &key(rank), self.deadline());
                        // Another thread may have acknowledged it meanwhile.
                        let is_absent = lost == rank && self.connection.acknowledged().contains(&rank);
                        match given.is_some() || is_absent {
                            true => given,
                            false => return Err(RendezvousError::RankLost { rank: lost, cause }),
                        }
                    }
                    Err(RendezvousError::RankLeft { .. }) => return Err(self.first_left(name, rank)),
                    got => Some(got?),
                },
            });
        }
        self.names.note(name);
        Ok(values)
    }

    /// Which rank an exchange fails for, where one has left: the first that left without a value. The others may have left because of that one.
    fn first_left(&self, name: &str, known: u32) -> RendezvousError {
        let end = self.deadline();
        let is_missing = |rank: &u32| self.last_word(*rank, &format!("{name}/{rank}"), end).is_none();
        let rank = self.left_ranks().into_iter().find(is_missing).unwrap_or(known);
        RendezvousError::RankLeft { rank, name: name.to_owned() }
    }

    /// The value of a rank in an exchange. Who waits for long says where, until the wait ends.
    fn get_of(&self, rank: u32, (name, key): (&str, &str), end: Instant) -> Result<Vec<u8>> {
        if let Some(value) = self.get_from(rank, (name, key), end.min(Instant::now() + SILENT_WAIT))? {
            return Ok(value);
        }
        self.put(&waiting_key(self.rank), name.as_bytes())?;
        let waited = self.await_of(rank, (name, key), end);
        // If the store is gone, so are those who would read it.
        self.connection.post(|id| Message::Remove { id, key: waiting_key(self.rank) });
        waited
    }

    /// The same. Where the other one waits instead is asked before the end: it may give up at the same time, and waits nowhere then.
    fn await_of(&self, rank: u32, (name, key): (&str, &str), end: Instant) -> Result<Vec<u8>> {
        let margin = (self.timeout / 4).min(Duration::from_secs(1));
        let asks_at = end.checked_sub(margin).unwrap_or(end);
        if let Some(value) = self.get_from(rank, (name, key), asks_at)? {
            return Ok(value);
        }
        let at = self.get_until(&waiting_key(rank), end.min(Instant::now() + SILENT_WAIT))?;
        if let Some(value) = self.get_from(rank, (name, key), end)? {
            return Ok(value);
        }
        let at = at.map(|at| String::from_utf8_lossy(&at).into_owned()).filter(|at| at != name);
        Err(RendezvousError::NotThere { rank, name: name.to_owned(), at, waited: self.timeout })
    }

    /// Waits until all ranks have come to a barrier of this name. Each name is used once.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    pub fn barrier(&self, name: &str) -> Result<()> {
        self.exchange(name, &[]).map(drop)
    }
}
