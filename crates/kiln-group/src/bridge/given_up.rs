//! Calls that a rank has given up because another one did not come. The ranks do not agree any more then which call is which, so the communicator takes no more of them on any rank.

use super::{Bridge, Counts, Place, rendezvous};
use crate::collective_part::Part;
use crate::error::{GroupError, Result};
use crate::given_up_collectives::WantedEnd;
use crate::rendezvous::{PutAnswer, ToldAbsence, WhyAbsent};
use crate::transfer::{self, Transfer};

/// What stands between a rank that gave up and why.
const GAVE_UP: &str = " gave up: ";
const NEXT: &str =
    "make another communicator with `DeviceCommunicator::meet`, on all ranks, or give them a longer deadline";

impl Bridge {
    /// Refuses calls after one that this rank gave up.
    pub(super) fn check_given_up(&self, counts: &Counts) -> Result<()> {
        let Some(why) = &counts.given_up else { return Ok(()) };
        let what = format!("communicator {} takes no more calls: {why}", self.id.short());
        Err(GroupError::Collective { what, next: NEXT })
    }

    /// A call has failed. If ranks did not come to it, what this rank brought is withdrawn, and ranks that come later are told. A receive alone has brought nothing: it is as if it had not been
    /// called.
    pub(super) fn give_up(
        &self,
        counts: &mut Counts,
        (parts, places): (&[Part], &[Place]),
        why: &GroupError,
    ) {
        let GroupError::Collective { what, .. } = why else { return };
        if let ([_], [Place::Pair(Transfer { from, to, .. })]) = (parts, places)
            && *to == self.rank
        {
            counts.numbers.received.entry(*from).and_modify(|count| *count = count.saturating_sub(1));
            return;
        }
        self.say_given_up(counts, places, what);
    }

    /// This rank takes no more calls, and the others are told why.
    pub(super) fn say_given_up(&self, counts: &mut Counts, places: &[Place], what: &str) {
        // The first rank that gave up is the one that the others are told of.
        let why = match what.contains(GAVE_UP) {
            true => what.to_owned(),
            false => format!("rank {}{GAVE_UP}{what}", self.rank),
        };
        // Said before it is withdrawn: a rank whose value is missing has given up, or has not come. Which ranks of the job were late stands before why.
        let told = self.job.rendezvous.told_absence(self.job.rendezvous.rank());
        let late = told.filter(ToldAbsence::is_late).map(|told| told.ranks).unwrap_or_default();
        let late: Vec<String> = late.iter().map(u32::to_string).collect();
        let said = format!("{} {why}", late.join(","));
        self.job.rendezvous.post(&self.given_up_key(self.rank), said.as_bytes());
        if let Some((key, wanted)) = self.wanted_end(places, said.into_bytes()) {
            self.job.rendezvous.post(&key, &wanted.value());
        }
        // What was sent in the same call, and not received yet, is of a call that was not done.
        let sent = |place: &&Place| matches!(place, Place::Pair(transfer) if transfer.from == self.rank);
        for place in places.iter().filter(sent) {
            self.job.rendezvous.forget(format!("{}/", self.key(place, self.rank)));
        }
        self.say_departed("gave up");
        counts.given_up = Some(why);
    }

    /// What this rank says to the store to give up the collectives of a call; none where there is none of all ranks.
    fn wanted_end(&self, places: &[Place], said: Vec<u8>) -> Option<(String, WantedEnd)> {
        let number = |place: &Place| match place {
            Place::All(number) => Some(*number),
            Place::Pair(_) => None,
        };
        let collectives: Vec<u64> = places.iter().filter_map(number).collect();
        let wanted = WantedEnd { rank: self.rank, size: self.size, collectives, said };
        (!wanted.collectives.is_empty()).then(|| (WantedEnd::key(&self.name, self.rank), wanted))
    }

    /// Ranks of the job have not come to a call within the deadline: whether the store knows better. Otherwise the call is given up, for all ranks.
    pub(super) fn have_come(&self, places: &[Place], (of_job, what): (&[u32], &str)) -> Result<bool> {
        let late: Vec<String> = of_job.iter().map(u32::to_string).collect();
        let said = format!("{} rank {}{GAVE_UP}{what}", late.join(","), self.rank);
        let Some((key, wanted)) = self.wanted_end(places, said.into_bytes()) else { return Ok(false) };
        let answer = self.job.rendezvous.put_until(&key, &wanted.value(), self.answer_end());
        Ok(matches!(answer.map_err(rendezvous)?, PutAnswer::Refused(_)))
    }

    /// What is said of a call that a rank does not come to any more which gave up one before it.
    pub(super) fn told_given_up(&self, said: &[u8]) -> GroupError {
        let said = String::from_utf8_lossy(said);
        let (late, what) = said.split_once(' ').unwrap_or(("", &said));
        // This rank may end because of that.
        if let Some((_, why)) = what.split_once(GAVE_UP) {
            let late = late.split(',').filter_map(|rank| rank.parse().ok()).collect();
            self.job.rendezvous.say_told(late, WhyAbsent::LateInCall(why.to_owned()));
        }
        GroupError::Collective { what: what.to_owned(), next: NEXT }
    }

    pub(super) fn given_up_key(&self, rank: u32) -> String {
        transfer::given_up_key(&self.name, rank)
    }
}
