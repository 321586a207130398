//! Exchanges and barriers: every rank gives a value and waits for those of all others. With its value a rank gives its call, on which all must agree.

use std::panic::Location;
use std::time::{Duration, Instant};

use super::error::RendezvousError;
use super::keys::{check, exchange_key, waiting_key};
use super::message::Message;
use super::rendezvous_call::{RendezvousCall, RendezvousCallKind, TwoCalls};
use super::seen::EndingLosses;
use super::told_absences::WhyAbsent;
use super::{Rendezvous, Result};

/// How long a rank waits in an exchange before it says where it waits.
pub(crate) const SILENT_WAIT: Duration = Duration::from_millis(100);

impl Rendezvous {
    /// Gives a value and gets those of all ranks, by rank; none for ranks whose loss was acknowledged, by [`acknowledge_losses`](Self::acknowledge_losses) or by a communicator of the job that was [rebuilt](crate::DeviceCommunicator::rebuild). All ranks must use the same name, and each
    /// name once.
    ///
    /// # Errors
    /// A name that this rank has used; a rank that called a [barrier](Self::barrier) of this name, or waits in another call, with both calls and their lines; a rank that did not come; one that has left the job in order; a value or a name that is too large; a rank is lost, unless
    /// that was acknowledged or all ranks had come before; the store is full or lost.
    #[track_caller]
    pub fn exchange(&self, name: &str, value: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        self.come_to(RendezvousCallKind::Exchange, name, value, Location::caller())
    }

    /// Waits until all ranks have come to a barrier of this name. Each name is used once.
    ///
    /// # Errors
    /// As for [`exchange`](Self::exchange).
    #[track_caller]
    pub fn barrier(&self, name: &str) -> Result<()> {
        self.come_to(RendezvousCallKind::Barrier, name, &[], Location::caller()).map(drop)
    }

    fn come_to(
        &self,
        kind: RendezvousCallKind,
        name: &str,
        value: &[u8],
        place: &Location<'_>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.names.check(name)?;
        check(&exchange_key(name, self.size), value)?;
        let call = RendezvousCall::new(kind, name, place);
        let values = self.exchange_once(&call, value).map_err(|error| self.first_cause(&call, error))?;
        self.names.note(name);
        self.say_came(|rank| values.get(rank as usize).is_some_and(Option::is_some));
        Ok(values)
    }

    fn exchange_once(&self, call: &RendezvousCall, value: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        let key = |rank: u32| exchange_key(&call.name, rank);
        self.put_unchecked(&key(self.rank), &call.with_value(value))?;
        let absent = self.connection.acknowledged();
        let (mut values, end) = (Vec::new(), self.deadline());
        for rank in 0..self.size {
            let given = match absent.contains(&rank) {
                true => None,
                false => match self.get_of(rank, (call, &key(rank)), end) {
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
            };
            values.push(given.map(|given| self.agreed(call, rank, &given)).transpose()?);
        }
        Ok(values)
    }

    /// The value that a rank gave, if it made the same call as this one.
    fn agreed(&self, call: &RendezvousCall, rank: u32, given: &[u8]) -> Result<Vec<u8>> {
        let not_there = || RendezvousError::NotThere { rank, name: call.name.clone(), waited: self.timeout };
        let (other, value) = RendezvousCall::and_value(given).ok_or_else(not_there)?;
        match call.meets(&other) {
            true => Ok(value),
            false => Err(self.other_call(call, (rank, other), None)),
        }
    }

    pub(crate) fn other_call(
        &self,
        call: &RendezvousCall,
        (other_rank, other): (u32, RendezvousCall),
        waited: Option<Duration>,
    ) -> RendezvousError {
        let (call, other_call) = (Box::new(call.clone()), Box::new(other));
        RendezvousError::OtherCall { rank: self.rank, call, other_rank, other_call, waited }
    }

    /// What an exchange fails for: the first rank that has gone, or the one that was late or made another call before that. The others, also rank 0 with the store, may have gone because of that one.
    fn first_cause(&self, call: &RendezvousCall, error: RendezvousError) -> RendezvousError {
        let name = call.name.as_str();
        let error = match error {
            RendezvousError::StoreLost { .. } => {
                self.connection.known_loss(EndingLosses::Unknown).unwrap_or(error)
            }
            error => error,
        };
        let (ended, left) = match &error {
            RendezvousError::RankLeft { rank, .. } => (None, Some(*rank)),
            RendezvousError::RankLost { rank, .. } => (Some(*rank), None),
            RendezvousError::StoreLost { .. } => (Some(0), None),
            RendezvousError::NotThere { rank, .. } => {
                self.say_told(vec![*rank], WhyAbsent::LateInExchange(name.to_owned()));
                return error;
            }
            RendezvousError::OtherCall { other_rank, other_call, .. } => {
                let calls = TwoCalls { own: call.clone(), other: (**other_call).clone() };
                self.say_told(vec![*other_rank], WhyAbsent::OtherCall(calls));
                return error;
            }
            _ => return error,
        };
        if let Some(why) =
            ended.and_then(|rank| self.told_other_call(name, rank).or_else(|| self.late_in(name, rank)))
        {
            return why;
        }
        let told = ended.and_then(|rank| self.told_absence(rank));
        let told = told.filter(|told| told.why == WhyAbsent::LeftJob);
        let told = told.and_then(|told| told.ranks.first().copied());
        let told = told.filter(|of| self.has_left_without(name, *of));
        let Some(known) = left.or(told) else { return error };
        // Of several the first that left without a value.
        let left = self.left_ranks().into_iter().find(|rank| self.has_left_without(name, *rank));
        let rank = left.unwrap_or(known);
        let why = self.told_other_call(name, rank).or_else(|| self.late_in(name, rank));
        if let Some(why) = why.or_else(|| self.late_before(name, rank)) {
            return why;
        }
        self.say_told(vec![rank], WhyAbsent::LeftJob);
        RendezvousError::RankLeft { rank, name: name.to_owned() }
    }

    /// The error of a rank that has gone because another one made another call, where one of the two has this name.
    fn told_other_call(&self, name: &str, gone: u32) -> Option<RendezvousError> {
        let told = self.told_absence(gone)?;
        let WhyAbsent::OtherCall(TwoCalls { own, other }) = told.why else { return None };
        let other_rank = *told.ranks.first()?;
        if own.name != name && other.name != name {
            return None;
        }
        let (own, other) = ((gone, Box::new(own)), (other_rank, Box::new(other)));
        // What this rank called is said first.
        let ((rank, call), (other_rank, other_call)) =
            if other_rank == self.rank { (other, own) } else { (own, other) };
        Some(RendezvousError::OtherCall { rank, call, other_rank, other_call, waited: None })
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
        Some(RendezvousError::NotThere { rank, name: name.to_owned(), waited })
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
        let key = exchange_key(name, rank);
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
    fn get_of(&self, rank: u32, (call, key): (&RendezvousCall, &str), end: Instant) -> Result<Vec<u8>> {
        let soon = end.min(Instant::now() + SILENT_WAIT);
        if let Some(value) = self.get_before(rank, (&call.name, key), soon)? {
            return Ok(value);
        }
        self.waiting_in(call, || self.await_of(rank, (call, key), end))
    }

    /// Says where this rank waits while it does.
    pub(crate) fn waiting_in<T>(&self, call: &RendezvousCall, wait: impl FnOnce() -> Result<T>) -> Result<T> {
        self.put_unchecked(&waiting_key(self.rank), call.to_text().as_bytes())?;
        let waited = wait();
        // If the store is gone, so are those who would read it.
        self.connection.post(|id| Message::Remove { id, key: waiting_key(self.rank) });
        waited
    }

    /// The same. Where the other one waits instead is asked before the end: it may give up at the same time, and waits nowhere then.
    fn await_of(&self, rank: u32, (call, key): (&RendezvousCall, &str), end: Instant) -> Result<Vec<u8>> {
        let name = call.name.as_str();
        let margin = (self.timeout / 4).min(Duration::from_secs(1));
        let asks_at = end.checked_sub(margin).unwrap_or(end);
        if let Some(value) = self.get_before(rank, (name, key), asks_at)? {
            return Ok(value);
        }
        let other = self.call_of(rank, end)?;
        if let Some(value) = self.get_before(rank, (name, key), end)? {
            return Ok(value);
        }
        Err(match other.filter(|other| !call.meets(other)) {
            Some(other) => self.other_call(call, (rank, other), Some(self.timeout)),
            None => RendezvousError::NotThere { rank, name: name.to_owned(), waited: self.timeout },
        })
    }

    /// The call in which a rank waits, if it does.
    pub(crate) fn call_of(&self, rank: u32, end: Instant) -> Result<Option<RendezvousCall>> {
        let text = self.get_until(&waiting_key(rank), end.min(Instant::now() + SILENT_WAIT))?;
        Ok(text.and_then(|text| RendezvousCall::parse(std::str::from_utf8(&text).ok()?)))
    }
}
