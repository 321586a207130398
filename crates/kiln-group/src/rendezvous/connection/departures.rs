//! What a connection says and hears of ranks that have gone in order, or are late.

use std::time::{Duration, Instant};

use super::super::error::RendezvousError;
use super::super::message::Message;
use super::super::seen::{EndingLosses, Seen};
use super::super::told_absences::{ToldAbsence, WhyAbsent};
use super::Connection;

/// How long rank 0 waits until its store has told the others.
const TOLD_LIMIT: Duration = Duration::from_secs(1);

impl Connection {
    /// Ranks that have left as planned, the first one first.
    pub(in super::super) fn left(&self) -> Vec<u32> {
        self.shared.lock().left.clone()
    }

    /// As [`request`](Self::request); none also once ranks have left that are not among these.
    pub(in super::super) fn request_while_here(
        &self,
        make: impl FnOnce(u64) -> Message,
        deadline: Instant,
        losses: EndingLosses<'_>,
        left: &[u32],
    ) -> Result<Option<Message>, RendezvousError> {
        let has_fresh = |seen: &Seen| seen.left.iter().any(|rank| !left.contains(rank));
        self.request_until(make, deadline, losses, has_fresh)
    }

    /// This rank was told of one that does not come, or that one has come. The store and the launcher are told of the first: this rank may end because of that.
    pub(in super::super) fn say_told(&self, absence: ToldAbsence) {
        let rank = self.shared.rank;
        let is_new = self.shared.lock().told.note(rank, absence.clone());
        if is_new {
            match &absence.why {
                WhyAbsent::LateInExchange(_) | WhyAbsent::LateInCall(_) => {
                    absence.ranks.iter().for_each(|rank| self.shared.notes.late(*rank));
                }
                WhyAbsent::HasCome => absence.ranks.iter().for_each(|rank| self.shared.notes.came(*rank)),
                WhyAbsent::LeftJob | WhyAbsent::EndedPart(_) | WhyAbsent::OtherCall(_) => {}
            }
            self.tell(&Message::Told { rank, absence });
            // The store of rank 0 goes with its process: it has told the others once it answers what comes after.
            if rank == 0 {
                let ask = |id| Message::WhoIsMissing { id };
                let _ = self.request(ask, Instant::now() + TOLD_LIMIT, EndingLosses::None);
            }
        }
    }

    pub(in super::super) fn told_absence(&self, rank: u32) -> Option<ToldAbsence> {
        self.shared.lock().told.of(rank).cloned()
    }
}
