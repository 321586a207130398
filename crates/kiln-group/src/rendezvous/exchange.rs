//! Exchanges and barriers: every rank gives a value and waits for those of all others.

use std::time::{Duration, Instant};

use super::error::RendezvousError;
use super::keys::{check, waiting_key};
use super::message::Message;
use super::seen::EndingLosses;
use super::told_absences::WhyAbsent;
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
        self.names.check(name)?;
        check(&format!("{name}/{}", self.size), value)?;
        let values = self.exchange_once(name, value).map_err(|error| self.first_cause(name, error))?;
        self.names.note(name);
        self.say_came(|rank| values.get(rank as usize).is_some_and(Option::is_some));
        Ok(values)
    }

    fn exchange_once(&self, name: &str, value: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let key = |rank: u32| format!("{name}/{rank}");
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
                    got => Some(got?),
                },
            });
        }
        Ok(values)
    }

    /// What an exchange fails for: the first rank that has gone, or the one that was late before that. The others, also rank 0 with the store, may have gone because of that one.
    fn first_cause(&self, name: &str, error: RendezvousError) -> RendezvousError {
        let error = match error {
            RendezvousError::StoreLost { .. } => {
                self.connection.known_loss(EndingLosses::Unknown).unwrap_or(error)
            }
            error => error,
        };
        let (ended, left) = match error {
            RendezvousError::RankLeft { rank, .. } => (None, Some(rank)),
            RendezvousError::RankLost { rank, .. } => (Some(rank), None),
            RendezvousError::StoreLost { .. } => (Some(0), None),
            RendezvousError::NotThere { rank, .. } => {
                self.say_told(vec![rank], WhyAbsent::LateInExchange(name.to_owned()));
                return error;
            }
            _ => return error,
        };
        if let Some(late) = ended.and_then(|rank| self.late_in(name, rank)) {
            return late;
        }
        let told = ended.and_then(|rank| self.told_absence(rank));
        let told = told.filter(|told| told.why == WhyAbsent::LeftJob);
        let told = told.and_then(|told| told.ranks.first().copied());
        let told = told.filter(|of| self.has_left_without(name, *of));
        let Some(known) = left.or(told) else { return error };
        // Of several the first that left without a value.
        let left = self.left_ranks().into_iter().find(|rank| self.has_left_without(name, *rank));
        let rank = left.unwrap_or(known);
        if let Some(late) = self.late_in(name, rank).or_else(|| self.late_before(name, rank)) {
            return late;
        }
        self.say_told(vec![rank], WhyAbsent::LeftJob);
        RendezvousError::RankLeft { rank, name: name.to_owned() }
    }

    /// The error of a rank that has gone because another one did not come to the same exchange.
    fn late_in(&self, name: &str, gone: u32) -> Option<RendezvousError> {
        let told = self.told_absence(gone)?;
        let WhyAbsent::LateInExchange(of_name) = &told.why else { return None };
        if of_name != name {
            return None;
        }
        let (rank, waited) = (told.ranks.iter().copied().find(|rank| *rank != self.rank)?, self.timeout);
        self.say_told(vec![rank], told.why);
        Some(RendezvousError::NotThere { rank, name: name.to_owned(), at: None, waited })
    }

    /// The error of a rank that has left the job because another one did not come to something else.
    fn late_before(&self, name: &str, left: u32) -> Option<RendezvousError> {
        let told = self.told_absence(left)?;
        let what = told.late_text()?;
        self.say_told(told.ranks.clone(), told.why);
        Some(RendezvousError::RankLate { ranks: told.ranks, what, left, name: name.to_owned() })
    }

    /// Whether a rank has left, and gives no value in an exchange.
    fn has_left_without(&self, name: &str, rank: u32) -> bool {
        let key = format!("{name}/{rank}");
        self.left_ranks().contains(&rank) && self.last_word(rank, &key, self.deadline()).is_none()
    }

    /// The value of a rank in an exchange; none if it has not given it until then.
    ///
    /// # Errors
    /// Any rank has left without its value; a rank or the store is lost.
    fn get_before(&self, rank: u32, (name, key): (&str, &str), end: Instant) -> Result<Option<Vec<u8>>> {
        let losses = EndingLosses::UnknownOrOf(rank);
        let mut known = Vec::new();
        loop {
            let left = self.left_ranks();
            let is_missed = |rank: &&u32| !known.contains(*rank) && self.has_left_without(name, **rank);
            if let Some(rank) = left.iter().find(is_missed) {
                let gone = RendezvousError::RankLeft { rank: *rank, name: name.to_owned() };
                return Err(self.connection.known_loss(losses).unwrap_or(gone));
            }
            let found = self.get_while_here(rank, (name, key), end, losses, &left)?;
            if found.is_some() || self.left_ranks() == left {
                return Ok(found);
            }
            known = left;
        }
    }

    /// The value of a rank in an exchange. Who waits for long says where, until the wait ends.
    fn get_of(&self, rank: u32, (name, key): (&str, &str), end: Instant) -> Result<Vec<u8>> {
        if let Some(value) = self.get_before(rank, (name, key), end.min(Instant::now() + SILENT_WAIT))? {
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
        if let Some(value) = self.get_before(rank, (name, key), asks_at)? {
            return Ok(value);
        }
        let at = self.get_until(&waiting_key(rank), end.min(Instant::now() + SILENT_WAIT))?;
        if let Some(value) = self.get_before(rank, (name, key), end)? {
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
