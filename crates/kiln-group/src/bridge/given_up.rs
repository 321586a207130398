//! Calls that a rank has given up because another one did not come. The ranks do not agree any more then which call is which, so the communicator takes no more of them on any rank.

use super::{Bridge, Counts, Place};
use crate::collective_part::Part;
use crate::error::{GroupError, Result};
use crate::rendezvous::{ToldAbsence, WhyAbsent};
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
            counts.received.entry(*from).and_modify(|count| *count = count.saturating_sub(1));
            return;
        }
        // The first rank that gave up is the one that the others are told of.
        let why = match what.contains(GAVE_UP) {
            true => what.clone(),
            false => format!("rank {}{GAVE_UP}{what}", self.rank),
        };
        // Said before it is withdrawn: a rank whose value is missing has given up, or has not come. Which ranks of the job were late stands before why.
        let told = self.job.rendezvous.told_absence(self.job.rendezvous.rank());
        let late = told.filter(ToldAbsence::is_late).map(|told| told.ranks).unwrap_or_default();
        let late: Vec<String> = late.iter().map(u32::to_string).collect();
        let said = format!("{} {why}", late.join(","));
        self.job.rendezvous.post(&self.given_up_key(self.rank), said.as_bytes());
        for place in places.iter().filter(|place| matches!(place, Place::All(_))) {
            self.job.rendezvous.forget(format!("{}/", self.key(place, self.rank)));
        }
        self.say_departed("gave up");
        counts.given_up = Some(why);
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
        format!("{}gave up/{rank}", transfer::collective_keys(&self.name))
    }
}
