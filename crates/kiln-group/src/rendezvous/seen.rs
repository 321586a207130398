//! What the store has said to a rank so far.
//!
//! Losses are counted: a rank that is lost and replaced before a thread looks was lost nevertheless, and what waits for it is told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::error::RendezvousError;
use super::message::Message;
use super::rank_thread::RankThread;
use super::told_absences::ToldAbsences;

/// How often the store is asked for lost ranks, at most.
const FIND_PERIOD: Duration = Duration::from_millis(500);
/// Between two looks whether the store has answered that.
const ANSWER_PERIOD: Duration = Duration::from_millis(90);
/// Looks at which the store has not answered, after which it is lost.
const SILENT_LOOKS: u32 = 6;

#[derive(Default, Debug)]
pub(super) struct Seen {
    pub(super) complete: bool,
    pub(super) lost: BTreeMap<u32, String>,
    /// Every loss in its order, also of ranks that were replaced since.
    pub(super) losses: Vec<(u32, String)>,
    /// Ranks that have left as planned, the first one first: one that leaves because of another one comes after it.
    pub(super) left: Vec<u32>,
    /// What ranks were told of those that do not come: this one, those that are lost or have left, and rank 0.
    pub(super) told: ToldAbsences,
    /// This rank was lost before, and its process is a replacement.
    pub(super) is_replacement: bool,
    /// Lost ranks that the caller knows of, and how many losses there were when it said so.
    acknowledged: BTreeSet<u32>,
    acknowledged_losses: usize,
    pub(super) next_id: u64,
    /// Requests without an answer, and answers that were not taken yet.
    pub(super) answers: HashMap<u64, Option<Message>>,
    /// Why the connection ended.
    pub(super) ended: Option<String>,
    /// This rank, and why the others go on without it.
    pub(super) given_up: Option<(u32, String)>,
    /// This rank does not leave as planned when the connection is closed.
    pub(super) gives_up: bool,
    /// The caller is about to close the connection: its end says nothing of the store.
    pub(super) leaves: bool,
    /// The caller closed the connection.
    pub(super) closed: bool,
    /// The rank of this host to look after, and its thread.
    pub(super) watched: Option<(u32, RankThread)>,
    /// The store was asked for lost ranks.
    search: Option<Search>,
}

/// What came of the last question to the store for lost ranks.
#[derive(Debug)]
struct Search {
    asked: Instant,
    looked: Instant,
    /// Looks since then at which nothing was heard of the store.
    silent_looks: u32,
    is_answered: bool,
}

/// What is to be done about lost ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SearchStep {
    Ask,
    Wait,
    /// The store does not answer.
    StoreLost,
}

/// Which losses end a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndingLosses<'a> {
    None,
    /// Those that the caller does not know of: of ranks that are lost, and of those that were lost since the wait began.
    Unknown,
    /// These, and the loss of this rank, known or not: it gives nothing.
    UnknownOrOf(u32),
    /// Those of these ranks after so many losses, known or not.
    Since(usize, &'a [u32]),
}

impl Seen {
    /// Takes note of a message to a rank.
    pub(super) fn note(&mut self, message: Message, own: u32) {
        if let Some(search) = &mut self.search {
            search.is_answered = true;
        }
        match message {
            Message::Complete => self.complete = true,
            Message::Lost { rank, cause } if rank == own => self.given_up = Some((rank, cause)),
            Message::Told { rank, absence } => {
                self.told.note(rank, absence);
            }
            Message::Lost { rank, cause } => {
                let cause = self.told.cause(rank, cause);
                self.losses.push((rank, cause.clone()));
                self.lost.insert(rank, cause);
            }
            Message::Left { rank } => {
                self.left.retain(|left| *left != rank);
                self.left.push(rank);
            }
            Message::Back { rank } if rank == own => self.is_replacement = true,
            Message::Back { rank } => {
                self.told.forget(rank);
                self.told.forget_of(rank);
                self.lost.remove(&rank);
                self.left.retain(|left| *left != rank);
                self.acknowledged.remove(&rank);
            }
            Message::Watch { rank, thread } => {
                self.watched = RankThread::parse(&thread).map(|thread| (rank, thread));
            }
            Message::Done { id }
            | Message::Value { id, .. }
            | Message::Missing { id, .. }
            | Message::Gone { id }
            | Message::Full { id, .. } => {
                // An answer that came too late is no longer wanted.
                if let Some(answer) = self.answers.get_mut(&id) {
                    *answer = Some(message);
                }
            }
            _ => {}
        }
    }

    /// Takes note that the caller knows of all lost ranks.
    pub(super) fn acknowledge(&mut self) -> Vec<(u32, String)> {
        self.acknowledged = self.lost.keys().copied().collect();
        self.acknowledged_losses = self.losses.len();
        self.lost.iter().map(|(rank, cause)| (*rank, cause.clone())).collect()
    }

    /// Lost ranks that the caller knows of.
    pub(super) fn acknowledged(&self) -> BTreeSet<u32> {
        self.acknowledged.clone()
    }

    /// The first loss that ends a wait, which began after so many losses.
    pub(super) fn ending_loss(&self, began: usize, losses: EndingLosses<'_>) -> Option<(u32, String)> {
        let mut numbered = self.losses.iter().enumerate();
        let found = match losses {
            EndingLosses::None => None,
            EndingLosses::Unknown | EndingLosses::UnknownOrOf(_) => {
                let fresh = began.max(self.acknowledged_losses);
                let is_awaited = |rank: &u32| matches!(losses, EndingLosses::UnknownOrOf(of) if of == *rank);
                numbered.find(|(at, (rank, _))| {
                    let is_known = self.acknowledged.contains(rank) && !is_awaited(rank);
                    *at >= fresh || self.is_last_loss(*at) && !is_known
                })
            }
            EndingLosses::Since(seen, ranks) => {
                numbered.find(|(at, (rank, _))| *at >= seen && ranks.contains(rank))
            }
        };
        found.map(|(_, loss)| loss.clone())
    }

    /// Whether a loss is that of a rank which is lost now, and not one of a rank that was replaced since.
    pub(super) fn is_last_loss(&self, at: usize) -> bool {
        let Some((rank, _)) = self.losses.get(at) else { return false };
        self.lost.contains_key(rank) && self.losses.iter().skip(at + 1).all(|(later, _)| later != rank)
    }

    /// The same as an error.
    pub(super) fn ending_error(&self, began: usize, losses: EndingLosses<'_>) -> Option<RendezvousError> {
        if self.given_up.is_some() {
            return self.end_of_connection();
        }
        // A loss that was told before the store went is why it went, more often than not.
        if let Some((rank, cause)) = self.ending_loss(began, losses) {
            return Some(RendezvousError::RankLost { rank, cause });
        }
        self.end_of_connection()
    }

    /// Why the store cannot be reached any more, if so.
    pub(super) fn end_of_connection(&self) -> Option<RendezvousError> {
        match (&self.given_up, &self.ended) {
            (Some((rank, cause)), _) => Some(RendezvousError::GivenUp { rank: *rank, cause: cause.clone() }),
            (None, Some(cause)) => Some(RendezvousError::StoreLost { cause: cause.clone() }),
            (None, None) => None,
        }
    }

    /// Looks what came of the question for lost ranks.
    pub(super) fn search(&mut self, now: Instant) -> SearchStep {
        if let Some(search) = &mut self.search {
            if !search.is_answered {
                if now - search.looked >= ANSWER_PERIOD {
                    (search.looked, search.silent_looks) = (now, search.silent_looks + 1);
                }
                let is_lost = search.silent_looks >= SILENT_LOOKS;
                return if is_lost { SearchStep::StoreLost } else { SearchStep::Wait };
            }
            if now - search.asked < FIND_PERIOD {
                return SearchStep::Wait;
            }
        }
        self.search = Some(Search { asked: now, looked: now, silent_looks: 0, is_answered: false });
        SearchStep::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lose(seen: &mut Seen, rank: u32) {
        seen.note(Message::Lost { rank, cause: "closed".into() }, 0);
    }

    fn ending(seen: &Seen, began: usize, losses: EndingLosses<'_>) -> Option<u32> {
        seen.ending_loss(began, losses).map(|(rank, _)| rank)
    }

    #[test]
    fn a_loss_ends_waits_that_had_begun_also_when_a_replacement_comes_before_they_look() {
        let mut seen = Seen::default();
        lose(&mut seen, 2);
        seen.note(Message::Back { rank: 2 }, 0);
        assert_eq!(ending(&seen, 0, EndingLosses::Unknown), Some(2));
        assert_eq!(ending(&seen, 1, EndingLosses::Unknown), None, "a wait for the replacement");
        assert_eq!(ending(&seen, 0, EndingLosses::None), None);
        seen.acknowledge();
        assert_eq!(ending(&seen, 0, EndingLosses::Unknown), None);
    }

    #[test]
    fn the_loss_of_a_replacement_is_told_with_its_own_cause() {
        let mut seen = Seen::default();
        lose(&mut seen, 2);
        seen.note(Message::Back { rank: 2 }, 0);
        seen.note(Message::Lost { rank: 2, cause: "stopped".into() }, 0);
        let told = |losses| seen.ending_loss(2, losses);
        assert_eq!(told(EndingLosses::Unknown), Some((2, "stopped".into())));
        assert_eq!(told(EndingLosses::UnknownOrOf(2)), Some((2, "stopped".into())));
        assert_eq!(told(EndingLosses::Since(1, &[2])), Some((2, "stopped".into())));
        seen.acknowledge();
        assert_eq!(ending(&seen, 2, EndingLosses::UnknownOrOf(1)), None);
        assert_eq!(ending(&seen, 2, EndingLosses::UnknownOrOf(2)), Some(2));
    }

    #[test]
    fn a_communicator_is_told_of_the_losses_of_its_ranks_since_it_was_made() {
        let mut seen = Seen::default();
        lose(&mut seen, 3);
        lose(&mut seen, 1);
        seen.note(Message::Back { rank: 1 }, 0);
        seen.acknowledge();
        assert_eq!(ending(&seen, 2, EndingLosses::Since(0, &[0, 1, 2])), Some(1));
        assert_eq!(ending(&seen, 2, EndingLosses::Since(0, &[0, 3])), Some(3));
        assert_eq!(ending(&seen, 2, EndingLosses::Since(2, &[0, 1, 2, 3])), None);
        assert_eq!(ending(&seen, 2, EndingLosses::Since(0, &[0, 2])), None);
    }

    #[test]
    fn a_store_that_does_not_answer_is_lost_after_some_looks() {
        let (mut seen, mut now) = (Seen::default(), Instant::now());
        assert_eq!(seen.search(now), SearchStep::Ask);
        for _ in 0..5 {
            now += ANSWER_PERIOD;
            assert_eq!(seen.search(now), SearchStep::Wait);
        }
        seen.note(Message::Alive, 0);
        now += FIND_PERIOD;
        assert_eq!(seen.search(now), SearchStep::Ask);
        for _ in 0..5 {
            now += ANSWER_PERIOD;
            assert_eq!((seen.search(now), seen.search(now)), (SearchStep::Wait, SearchStep::Wait));
        }
        assert_eq!(seen.search(now + ANSWER_PERIOD), SearchStep::StoreLost);
    }
}
