//! What the ranks that are left agree on: a communicator in the place of theirs, and who replaces lost ranks.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Membership;
use crate::deadline::after;
use crate::error::{GroupError, Result};
use crate::rendezvous::LostRank;
use crate::seat::{Application, Seat};

impl Membership {
    /// A rank begins to rebuild, and knows of these losses.
    ///
    /// # Errors
    /// The store is lost.
    pub(crate) fn begin_round(&self, rank: u32, lost: &[LostRank]) -> Result<()> {
        self.job.as_ref().map_or(Ok(()), |job| job.say_losses(self.id, rank, lost))
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
        said: &[u8],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        let gone: Vec<String> = lost.iter().map(|lost| lost.rank.to_string()).collect();
        let name = format!("kiln/{}/{name}/without {}", self.id.short(), gone.join(" "));
        match &self.job {
            Some(job) => job.exchange((self.id, rank), (&name, lost, losses_seen), said),
            None => self.exchange_here(rank, (&name, lost), said, limit),
        }
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
        if state.lost.len() == lost.len() {
            let round = state.rounds.entry(name.to_owned()).or_default();
            round.said.insert(rank, said.to_vec());
            round.is_complete |= round.said.len() + lost.len() == size;
            self.changed.notify_all();
        }
        loop {
            if let Some(round) = state.rounds.get(name).filter(|round| round.is_complete) {
                return Ok(Some(round.said.clone()));
            }
            if state.lost.len() != lost.len() {
                return Ok(None);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let said = state.rounds.get(name).map(|round| &round.said);
                let is_absent = |rank: &u32| {
                    !said.is_some_and(|said| said.contains_key(rank)) && !state.lost.contains_key(rank)
                };
                return Err(GroupError::RanksAbsent {
                    ranks: (0..self.size).filter(is_absent).collect(),
                    waited: limit,
                });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until each lost rank has a replacement. None if another rank is lost meanwhile.
    ///
    /// # Errors
    /// The ranks that have no replacement within the time limit; the store is lost.
    pub(crate) fn applications(
        &self,
        lost: &[LostRank],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Application>>> {
        if let Some(job) = &self.job {
            return job.applications(lost);
        }
        let end = after(Instant::now(), limit);
        let mut state = self.state();
        loop {
            if state.lost.len() != lost.len() {
                return Ok(None);
            }
            let is_absent = |rank: &u32| !state.applications.contains_key(rank);
            let absent: Vec<u32> = lost.iter().map(|lost| lost.rank).filter(is_absent).collect();
            let left = end.saturating_duration_since(Instant::now());
            match (absent.is_empty(), left.is_zero()) {
                (true, _) => return Ok(Some(state.applications.clone())),
                (_, true) => return Err(GroupError::ReplacementsAbsent { ranks: absent, waited: limit }),
                _ => {}
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives a replacement its place.
    pub(crate) fn seat(&self, application: Application, seat: Seat) -> Result<()> {
        if let Some(job) = &self.job {
            return job.seat(application, &seat);
        }
        let mut state = self.state();
        state.applications.retain(|_, waiting| *waiting != application);
        state.filled.insert(seat.rank);
        state.seats.insert(application, seat);
        self.changed.notify_all();
        Ok(())
    }

    /// Asks for the place of a lost rank, and waits until the ranks that are left have given it.
    ///
    /// # Errors
    /// They did not do so within the time limit; another replacement waits for the same place, or has it.
    pub(crate) fn apply(&self, rank: u32, limit: Duration) -> Result<Seat> {
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
        state.applications.insert(rank, application);
        self.changed.notify_all();
        loop {
            if let Some(seat) = state.seats.remove(&application) {
                return Ok(seat);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.applications.remove(&rank);
                let ranks = (0..self.size).filter(|rank| !state.lost.contains_key(rank)).collect();
                return Err(GroupError::RanksAbsent { ranks, waited: limit });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A rank has rebuilt the communicator.
    pub(crate) fn note_rebuilt(&self, rank: u32) {
        self.state().rebuilt.insert(rank);
    }

    /// Whether a rank has rebuilt the communicator.
    pub(crate) fn has_rebuilt(&self, rank: u32) -> bool {
        self.state().rebuilt.contains(&rank)
    }

    /// Whether a rank of this process has.
    pub(crate) fn is_rebuilt(&self) -> bool {
        !self.state().rebuilt.is_empty()
    }
}
