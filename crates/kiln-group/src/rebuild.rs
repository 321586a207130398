//! A communicator of the ranks that are left after one was lost, and of replacements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kiln_operation::CommunicatorId;

use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};
use crate::lost_device::lost_device;
use crate::membership::Membership;
use crate::remembered_call::{RememberedCall, RememberedCalls};
use crate::rendezvous::LostRank;
use crate::seat::{Application, Seat};

/// The most collectives that a rank offers to do again.
const REPEATED_LIMIT: usize = 10_000;

/// What came of a communicator that lost a rank, on one of its ranks.
///
/// Collectives are counted from 0 in the order in which this rank submitted them, without those in graphs. A group made with `and` counts as one, and a [`split`](DeviceCommunicator::split) as two. All before `done` are done on every rank that is left. Those
/// from `done` to `done_here` are done on this rank and not on all. Those from `done_here` to `submitted` were ended: their tickets fail, and what they were to write
/// cannot be read until it is overwritten whole. Of these, [`repeatable`](Self::repeatable) are those that no rank has done and every rank can do again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RebuiltCommunicator {
    /// This rank of the new communicator.
    pub communicator: DeviceCommunicator,
    /// The ranks that are lost, by their number in the old communicator.
    pub lost: Vec<LostRank>,
    /// Those of them that were replaced: all, or none.
    pub replaced: Vec<u32>,
    /// The number that each rank of the new communicator had in the old one.
    pub former_ranks: Vec<u32>,
    /// Collectives that are done on all ranks that are left.
    pub done: u64,
    /// Collectives that are done on this rank; 0 on a replacement.
    pub done_here: u64,
    /// Collectives that this rank had submitted; 0 on a replacement.
    pub submitted: u64,
    /// Collectives that none of the ranks that are left has done and whose inputs all of them still have: not in place, buffers not freed, and nothing that is read was to be
    /// written by other work that was ended. All ranks have the same list. [`repeat`](Self::repeat) does them again. Without replacements only all-reduces, reduces and
    /// broadcasts from and to ranks that are left, and barriers.
    pub repeatable: Vec<u64>,
    pub(crate) remembered: Arc<RememberedCalls>,
}

/// What becomes of the lost ranks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LostRanks {
    LeftOut,
    Replaced,
}

impl LostRanks {
    /// The numbers that the ranks of the new communicator have in the old one of so many.
    fn former_ranks(self, lost: &[LostRank], old_size: u32) -> Vec<u32> {
        let is_left = |rank: &u32| self == Self::Replaced || lost.iter().all(|lost| lost.rank != *rank);
        (0..old_size).filter(is_left).collect()
    }

    /// Who applied for the places of lost ranks, where they are given to replacements; none if there is another round.
    fn applications(
        self,
        wait: impl FnOnce() -> Result<Option<BTreeMap<u32, Application>>>,
    ) -> Result<Option<BTreeMap<u32, Application>>> {
        match self {
            Self::LeftOut => Ok(Some(BTreeMap::new())),
            Self::Replaced => wait(),
        }
    }
}

impl DeviceCommunicator {
    /// The first rank that is lost, if one is. The communicator takes no more collectives then.
    pub fn lost_rank(&self) -> Option<LostRank> {
        self.first_lost().cloned()
    }

    /// Makes a communicator of the ranks that are left after one was lost. They are in the order of their old ranks.
    ///
    /// Every rank that is left calls it, and it waits for all of them; so each rank needs a thread or a process. If another rank is lost meanwhile, the ranks
    /// begin again without it. A rank that had dropped its communicator when the other one was lost, or drops it instead of calling this, is left out as a lost rank. Buffers that no unfinished collective was to write, nor work behind one, are as they were.
    ///
    /// In a job it acknowledges all losses of the job, as [`acknowledge_losses`](crate::Rendezvous::acknowledge_losses) does: exchanges and barriers go on without the lost ranks.
    ///
    /// A communicator is rebuilt once: if the new one loses a rank, that one is rebuilt. Either all ranks call this or all call [`rebuild_replaced`](Self::rebuild_replaced);
    /// otherwise those of one kind do not see the others, and name them after the deadline as having called the other one ([`GroupError::OtherRebuild`]); they can then agree and call again.
    ///
    /// In a job it acknowledges the losses that the job knows of, as [`acknowledge_losses`](crate::Rendezvous::acknowledge_losses) does: exchanges and barriers go on without those ranks.
    ///
    /// # Errors
    /// No rank is lost, or this one is: then the error is that of its device. It was rebuilt already, or another thread does so as this rank; ranks that do not call it within
    /// the deadline, or in a job within the time limit of the rendezvous; what [`join`](Self::join) answers. A rank that fails after the others have heard of it is lost for them.
    #[track_caller]
    pub fn rebuild(&self) -> Result<RebuiltCommunicator> {
        self.rebuild_as(LostRanks::LeftOut)
    }

    /// Makes a communicator in which every lost rank has a replacement: its size and the numbers of its ranks are those of the old one. A replacement is a thread that
    /// [takes the place](crate::RankVacancy::take) of a lost rank of this process, or a process that joins the job as that rank and calls
    /// [`replace`](Self::replace).
    ///
    /// It waits for the replacements, and otherwise does what [`rebuild`](Self::rebuild) does. A replacement that is lost before all ranks have agreed on it is waited for again. One that is lost
    /// after that and before it has joined is lost as a rank of the new communicator: this call answers it on all ranks, its collectives fail with
    /// [`CommunicatorRankLost`](crate::CommunicatorRankLost) whose cause says that the replacement had not joined, and `rebuild_replaced` on the new one waits for another replacement.
    ///
    /// # Errors
    /// Rank 0 of a job is lost, whose process keeps what the ranks meet at: it cannot be replaced, and [`rebuild`](Self::rebuild) goes on without it.
    /// [`GroupError::ReplacementsAbsent`] with the ranks that were not replaced within the deadline, or the time limit of the rendezvous: call it again, or
    /// [`rebuild`](Self::rebuild). What [`rebuild`](Self::rebuild) answers.
    #[track_caller]
    pub fn rebuild_replaced(&self) -> Result<RebuiltCommunicator> {
        self.rebuild_as(LostRanks::Replaced)
    }

    /// The ranks, unless none is lost or this one is.
    fn to_rebuild(&self) -> Result<&Arc<Membership>> {
        let membership = self.membership();
        if let Some(membership) = membership {
            self.check_own(membership)?;
        }
        if self.lost_rank().is_none() {
            self.look();
        }
        membership.filter(|_| self.lost_rank().is_some()).ok_or_else(|| {
            let what = format!("no rank of communicator {:?} is lost", self.id());
            GroupError::Collective { what, next: "rebuild it when an error names a lost rank" }
        })
    }

    /// Refuses what a rank cannot do that is lost itself.
    fn check_own(&self, membership: &Membership) -> Result<()> {
        let rank = self.rank();
        let Some(cause) = membership.own_loss(rank) else { return Ok(()) };
        if membership.job.is_none() {
            // It may be the first to notice.
            membership.report(rank, cause.clone(), None);
        }
        Err(match lost_device(self.runtime()) {
            Some(source) => GroupError::Rank { rank, source },
            None => GroupError::Collective {
                what: format!(
                    "rank {rank} of communicator {:?}, which is this one, is lost: {cause}",
                    self.id()
                ),
                next: "let the others rebuild it, and take the place of this rank with a replacement",
            },
        })
    }

    #[track_caller]
    fn rebuild_as(&self, lost_ranks: LostRanks) -> Result<RebuiltCommunicator> {
        let membership = self.to_rebuild()?;
        let _rebuilding = membership.begin_rebuild(self.rank(), lost_ranks == LostRanks::Replaced)?;
        let (rank, old_size, limit) = (self.rank(), self.size(), self.config().deadline);
        let (done_here, submitted, remembered) = self.counts();
        loop {
            membership.look_who_dropped(rank);
            let (lost, losses_seen) = membership.lost_so_far();
            self.check_own(membership)?;
            membership.begin_round(rank, &lost, &BTreeMap::new())?;
            let applied = lost_ranks.applications(|| membership.applications(rank, &lost, limit))?;
            let Some(applications) = applied else { continue };
            let mut losses_before = losses_seen;
            if !applications.is_empty() {
                losses_before = membership.losses_now(losses_seen);
                membership.begin_round(rank, &lost, &applications)?;
            }
            let former_ranks = lost_ranks.former_ranks(&lost, old_size);
            let offered = offered(&remembered, &former_ranks, (rank, old_size));
            let said = RankCounts { done: done_here, submitted, offered }.to_bytes();
            let exchange = |name, said: &[u8]| {
                let round = round_name(name, &applications);
                membership.exchange(rank, (&round, &lost, losses_seen), &applications, said, limit)
            };
            let Some(counts) = exchange("done", &said)? else { continue };
            let is_leader = counts.keys().next() == Some(&rank);
            let (done, repeatable) = agreed(counts.values());
            let size = former_ranks.len() as u32;
            let mut id = Vec::new();
            if is_leader && size > 1 {
                let (lost, repeatable) = (lost.clone(), repeatable.clone());
                let seat =
                    |id| Seat { id, rank, size, done, repeatable, lost, job_ranks: Vec::new(), meetings: 0 };
                // The others wait for it.
                id = self.offered_id(membership, &applications, seat).inspect_err(|error| {
                    membership.report(rank, format!("it could not rebuild: {error}"), None);
                })?;
            }
            let ids = exchange("id", &id);
            let id = ids.as_ref().ok().and_then(|ids| ids.as_ref()?.values().next().cloned());
            let is_agreed = id.as_ref().is_some_and(|id| !id.is_empty());
            if is_leader {
                membership.give_places(is_agreed);
            }
            // Without an id a replacement has gone meanwhile.
            if ids?.is_none() || size > 1 && !is_agreed {
                continue;
            }
            membership.note_rebuilt(rank);
            if let Some((bridge, _)) = self.bridge() {
                bridge.forget();
            }
            let id = id.unwrap_or_default();
            let replaced: Vec<u32> = applications.keys().copied().collect();
            let communicator =
                self.join_rebuilt(membership, &id, (&former_ranks, &replaced), losses_before)?;
            let remembered = Arc::new(remembered);
            return Ok(RebuiltCommunicator {
                communicator,
                lost,
                replaced,
                former_ranks,
                done,
                done_here,
                submitted,
                repeatable,
                remembered,
            });
        }
    }

    /// The id of the new communicator, in which places are held for the replacements. Empty if one of them waits no more.
    fn offered_id(
        &self,
        membership: &Membership,
        applications: &BTreeMap<u32, Application>,
        seat: impl FnOnce(CommunicatorId) -> Seat,
    ) -> Result<Vec<u8>> {
        let id = self.next_id()?;
        let is_offered = applications.is_empty() || membership.offer(applications, &seat(id))?;
        Ok(if is_offered { id.bytes().to_vec() } else { Vec::new() })
    }

    /// Joins the new communicator, whose ranks had these numbers, and of which these were replaced.
    #[track_caller]
    fn join_rebuilt(
        &self,
        membership: &Membership,
        id: &[u8],
        (former_ranks, replaced): (&[u32], &[u32]),
        losses_before: usize,
    ) -> Result<Self> {
        let size = former_ranks.len() as u32;
        if size == 1 {
            return Self::alone(self.runtime());
        }
        let place = former_ranks.iter().position(|former| *former == self.rank()).unwrap_or(0) as u32;
        let id = CommunicatorId::try_from(id).map_err(GroupError::collective)?;
        let members = membership.successor(id, former_ranks, losses_before);
        members.note_replaced(replaced.iter().copied());
        let joined = Self::join_in(self.runtime(), id, (place, size), &self.config(), &members);
        let joined = joined.inspect_err(|error| {
            let cause = format!("it could not join the others after a loss: {error}");
            members.report(place, cause.clone(), None);
            membership.report(self.rank(), cause, None);
        });
        membership.note_come(&members);
        joined
    }
}

/// Ranks that wait for other replacements are in another round.
fn round_name(name: &str, applications: &BTreeMap<u32, Application>) -> String {
    let replacements: Vec<String> = applications.values().map(|one| format!("{one:x}")).collect();
    format!("{name}/{}", replacements.join(" "))
}

/// The collectives that a rank of so many can do again with the ranks that had these numbers.
fn offered(calls: &RememberedCalls, former_ranks: &[u32], (rank, size): (u32, u32)) -> Vec<u64> {
    let can_be = |call: &RememberedCall| call.fits(former_ranks, size) && call.is_intact(rank, size);
    let numbers = calls.iter().filter(|(_, call)| can_be(call)).map(|(number, _)| *number);
    numbers.take(REPEATED_LIMIT).collect()
}

/// What a rank says of its collectives.
struct RankCounts {
    done: u64,
    submitted: u64,
    /// Those that it can do again.
    offered: Vec<u64>,
}

impl RankCounts {
    fn to_bytes(&self) -> Vec<u8> {
        [self.done, self.submitted]
            .iter()
            .chain(&self.offered)
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        Some(Self { done: numbers.next()?, submitted: numbers.next()?, offered: numbers.collect() })
    }
}

/// Collectives that are done on all ranks, and those that none has done and all can do again.
fn agreed<'a>(said: impl Iterator<Item = &'a Vec<u8>>) -> (u64, Vec<u64>) {
    let counts: Vec<RankCounts> = said.filter_map(|said| RankCounts::parse(said)).collect();
    let done = counts.iter().map(|counts| counts.done).min().unwrap_or(0);
    let begun = counts.iter().map(|counts| counts.done).max().unwrap_or(0);
    let mut offered = counts.into_iter().map(|counts| counts.offered.into_iter().collect::<BTreeSet<u64>>());
    let first = offered.next().unwrap_or_default();
    let common = offered.fold(first, |common, more| common.intersection(&more).copied().collect());
    (done, common.into_iter().filter(|number| *number >= begun).collect())
}

#[cfg(test)]
mod tests {
    use super::{RankCounts, agreed};

    #[test]
    fn what_a_rank_has_done_or_cannot_do_is_not_repeated() {
        let said = |done, submitted, offered: &[u64]| {
            RankCounts { done, submitted, offered: offered.to_vec() }.to_bytes()
        };
        let all = [said(2, 9, &[2, 3, 4, 5, 7]), said(5, 8, &[4, 5, 6, 7]), said(3, 9, &[3, 4, 5, 6, 7, 8])];
        // A rank that offers what it has done is not believed.
        assert_eq!(agreed(all.iter()), (2, vec![5, 7]));
        assert_eq!(agreed([said(5, 5, &[])].iter()), (5, vec![]));
        assert!(RankCounts::parse(&[0; 15]).is_none() && RankCounts::parse(&[0; 23]).is_none());
    }
}
