//! What the ranks that are left agree on: a communicator in the place of theirs, and who replaces lost ranks.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kiln_driver::DeviceKey;

use super::{Applicant, Membership};
use crate::deadline::after;
use crate::error::{GroupError, Result, rebuild_name};
use crate::rebuild_calls::RebuildCalls;
use crate::rendezvous::LostRank;
use crate::seat::{Application, Seat};

/// Between two looks whether the others have agreed on the place of a replacement.
const OFFER_PERIOD: Duration = Duration::from_millis(10);
/// Between two looks whether a replacement that waits has lost its device.
const DEVICE_PERIOD: Duration = Duration::from_millis(50);

impl Membership {
    /// A rank begins to rebuild, and knows of these losses, and of these replacements.
    ///
    /// # Errors
    /// The store is lost.
    pub(crate) fn begin_round(
        &self,
        rank: u32,
        lost: &[LostRank],
        applications: &BTreeMap<u32, Application>,
    ) -> Result<()> {
        self.job.as_ref().map_or(Ok(()), |job| job.say_losses(self.id, rank, lost, applications))
    }

    /// Losses of the job that are known now, which a communicator with the replacements of now does not have: a replacement may have been lost, and replaced, before.
    pub(crate) fn losses_now(&self, seen: usize) -> usize {
        self.job.as_ref().map_or(seen, |job| job.rendezvous.losses_seen())
    }

    /// What is said of ranks that did not come, or were not replaced: that others rebuild in another way than this one, if any do, which are in other rounds.
    fn named_otherwise(&self, rank: u32, lost: &[LostRank], error: GroupError) -> GroupError {
        let (GroupError::RanksAbsent { waited, .. } | GroupError::ReplacementsAbsent { waited, .. }) = error
        else {
            return error;
        };
        let calls = match &self.job {
            Some(job) => job.calls(self.id),
            None => self.state().calls.clone(),
        };
        let state = self.state();
        let is_replacing = state.calls.get(&rank).and_then(RebuildCalls::is_replacing).unwrap_or(false);
        let before = state.calls_before.get(&rank);
        let differs = |(other, calls): &(&u32, &RebuildCalls)| {
            let since = before.and_then(|before| before.get(other)).copied().unwrap_or(0);
            let is_lost = || lost.iter().any(|lost| lost.rank == **other) || state.lost.contains_key(other);
            **other != rank && calls.differs(since, is_replacing) && !is_lost()
        };
        let ranks: Vec<u32> = calls.iter().filter(differs).map(|(other, _)| *other).collect();
        match ranks.is_empty() {
            true => error,
            false => GroupError::OtherRebuild { ranks, called: rebuild_name(!is_replacing), waited },
        }
    }

    /// Says something to all ranks that are not lost, and returns what they say, by rank. None if another rank was lost meanwhile: then none of the ranks
    /// has an answer, or all have.
    ///
    /// # Errors
    /// Ranks that did not come within the time limit; the store is lost.
    pub(crate) fn exchange(
        &self,
        rank: u32,
        (name, lost, losses_seen): (&str, &[LostRank], usize),
        applications: &BTreeMap<u32, Application>,
        said: &[u8],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        let gone: Vec<String> = lost.iter().map(|lost| lost.rank.to_string()).collect();
        let name = format!("kiln/{}/{name}/without {}", self.id.short(), gone.join(" "));
        let heard = match &self.job {
            Some(job) => job.exchange((self.id, rank), (&name, lost, losses_seen), applications, said),
            None => self.exchange_here(rank, (&name, lost), said, limit),
        };
        heard.map_err(|error| self.named_otherwise(rank, lost, error))
    }

    fn exchange_here(
        &self,
        rank: u32,
        (name, lost): (&str, &[LostRank]),
        said: &[u8],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        let end = after(Instant::now(), limit);
        let size = self.size as usize;
        let mut state = self.state();
        // The words of a rank that is lost itself are not used.
        if state.lost.len() == lost.len() && !state.lost.contains_key(&rank) {
            let round = state.rounds.entry(name.to_owned()).or_default();
            round.said.insert(rank, said.to_vec());
            round.is_complete |= round.said.len() + lost.len() == size;
            self.changed.notify_all();
        }
        loop {
            let round = state.rounds.get(name).filter(|round| round.is_complete);
            if let Some(round) = round.filter(|round| round.said.contains_key(&rank)) {
                return Ok(Some(round.said.clone()));
            }
            if state.lost.len() != lost.len() || state.lost.contains_key(&rank) {
                return Ok(None);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let said = state.rounds.get(name).map(|round| &round.said);
                let is_absent = |rank: &u32| {
                    !said.is_some_and(|said| said.contains_key(rank)) && !state.lost.contains_key(rank)
                };
                let ranks = (0..self.size).filter(is_absent).collect();
                // It does not wait for the others any more.
                state.rounds.get_mut(name).map(|round| round.said.remove(&rank));
                return Err(GroupError::RanksAbsent { ranks, waited: limit });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until each lost rank has a replacement. None if another rank is lost meanwhile.
    ///
    /// # Errors
    /// The ranks that have no replacement within the time limit, or those that go on without; the store is lost.
    pub(crate) fn applications(
        &self,
        rank: u32,
        lost: &[LostRank],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Application>>> {
        let found = match &self.job {
            Some(job) => job.applications(lost),
            None => self.applications_here(lost, limit),
        };
        found.map_err(|error| self.named_otherwise(rank, lost, error))
    }

    fn applications_here(
        &self,
        lost: &[LostRank],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Application>>> {
        let end = after(Instant::now(), limit);
        let mut state = self.state();
        loop {
            if state.lost.len() != lost.len() {
                return Ok(None);
            }
            let is_absent = |rank: &u32| !state.applications.contains_key(rank);
            let absent: Vec<u32> = lost.iter().map(|lost| lost.rank).filter(is_absent).collect();
            let left = end.saturating_duration_since(Instant::now());
            if absent.is_empty() {
                let applications = state.applications.iter();
                return Ok(Some(applications.map(|(rank, one)| (*rank, one.application)).collect()));
            }
            if left.is_zero() {
                return Err(GroupError::ReplacementsAbsent { ranks: absent, waited: limit });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Holds a place for each replacement until all ranks agree. False if one of them waits no more.
    ///
    /// # Errors
    /// The store is lost.
    pub(crate) fn offer(&self, applications: &BTreeMap<u32, Application>, seat: &Seat) -> Result<bool> {
        let of = |rank: u32| Seat { rank, ..seat.clone() };
        if let Some(job) = &self.job {
            for (rank, application) in applications {
                job.seat(*application, &of(*rank))?;
            }
            return Ok(true);
        }
        let mut state = self.state();
        let waits = |(rank, application): (&u32, &Application)| {
            state.applications.get(rank).is_some_and(|waiting| waiting.application == *application)
        };
        if !applications.iter().all(waits) {
            return Ok(false);
        }
        for (rank, waiting) in &mut state.applications {
            waiting.offered = applications.contains_key(rank).then(|| of(*rank));
        }
        Ok(true)
    }

    /// Gives the replacements the places that are held for them, if the ranks agree; otherwise they wait on.
    pub(crate) fn give_places(&self, is_agreed: bool) {
        let mut state = self.state();
        let waiting = std::mem::take(&mut state.applications);
        for (rank, mut applicant) in waiting {
            match applicant.offered.take().filter(|_| is_agreed) {
                Some(seat) => {
                    state.filled.insert(rank);
                    state.seats.insert(applicant.application, seat);
                }
                None => drop(state.applications.insert(rank, applicant)),
            }
        }
        self.changed.notify_all();
    }

    /// Asks for the place of a lost rank, and waits until the ranks that are left have given it. None if its device is lost before they begin to: another one may then ask.
    ///
    /// # Errors
    /// They did not do so within the time limit; another replacement waits for the same place, or has it; a rank or another replacement has the device.
    pub(crate) fn apply(
        &self,
        rank: u32,
        (device, is_lost): (DeviceKey, impl Fn() -> bool),
        limit: Duration,
    ) -> Result<Option<Seat>> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let application = Application::from(LAST.fetch_add(1, Ordering::Relaxed));
        let end = after(Instant::now(), limit);
        let mut state = self.state();
        if state.filled.contains(&rank) || !state.rebuilt.is_empty() {
            let what = match state.filled.contains(&rank) {
                true => format!("the place of rank {rank} is filled: a replacement came before"),
                false => format!("rank {rank} has no place any more: its communicator was rebuilt already"),
            };
            return Err(GroupError::Collective { what, next: "make one replacement of a lost rank" });
        }
        if state.applications.contains_key(&rank) {
            return Err(GroupError::Collective {
                what: format!("rank {rank} has a replacement already"),
                next: "make one replacement of a lost rank",
            });
        }
        let is_left = |rank: &u32| !state.lost.contains_key(rank);
        let ranks = state.here.iter().filter(|(rank, _)| is_left(rank));
        let ranks = ranks.map(|(rank, entry)| (*rank, entry.driver.info().key));
        let replacements = state.applications.iter().map(|(rank, waiting)| (*rank, waiting.device));
        if let Some((owner, _)) = ranks.chain(replacements).find(|(_, known)| *known == device) {
            return Err(GroupError::Collective {
                what: format!("the device that is to replace rank {rank} is that of rank {owner}"),
                next: "give the replacement a device that no rank has",
            });
        }
        state.applications.insert(rank, Applicant { application, device, offered: None });
        self.changed.notify_all();
        loop {
            if let Some(seat) = state.seats.remove(&application) {
                return Ok(Some(seat));
            }
            // While the others agree on its place it waits for that.
            let is_offered = state.applications.get(&rank).is_some_and(|waiting| waiting.offered.is_some());
            let left = match end.saturating_duration_since(Instant::now()) {
                left if is_offered => left.max(OFFER_PERIOD),
                left => left,
            };
            if !is_offered && is_lost() {
                state.applications.remove(&rank);
                return Ok(None);
            }
            if left.is_zero() {
                state.applications.remove(&rank);
                let ranks = (0..self.size).filter(|rank| !state.lost.contains_key(rank)).collect();
                return Err(GroupError::RanksAbsent { ranks, waited: limit });
            }
            let waited = self.changed.wait_timeout(state, left.min(DEVICE_PERIOD));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A rank has rebuilt the communicator.
    pub(crate) fn note_rebuilt(&self, rank: u32) {
        self.state().rebuilt.insert(rank);
    }

    /// Whether a rank of this process has rebuilt the communicator.
    pub(crate) fn is_rebuilt(&self) -> bool {
        !self.state().rebuilt.is_empty()
    }
}
