//! What the ranks of a communicator are told when one of them is lost.

use crate::rank_list::listed;

/// A rank of a communicator is lost. What needs it was ended; the device of the rank that is told goes on.
///
/// Tickets of unfinished collectives fail with it, and so do those of work behind them: `error.downcast_ref::<CommunicatorRankLost>()`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {cause}; {}", which(self), next(self))]
pub struct CommunicatorRankLost {
    /// The communicator, in short.
    pub communicator: String,
    /// The rank that is lost.
    pub lost: u32,
    /// What was seen of it.
    pub cause: String,
    /// Ranks that were late, where the lost one had waited for them in vain until the deadline: that is the reason then. They are not lost.
    pub late: Vec<u32>,
    /// Whether this rank can go on: not where the lost rank is rank 0 of a job, which keeps what the ranks meet at, unless its process lives and has lost its device alone; nor where the lost
    /// rank is this one, which the others gave up.
    pub can_rebuild: bool,
    /// Whether a replacement can take the place of the lost rank: not where this rank cannot go on, nor where the lost rank is rank 0 of a job.
    pub can_replace: bool,
}

impl CommunicatorRankLost {
    /// The lost rank is the one that is told.
    pub(crate) fn own(communicator: String, lost: u32, cause: String) -> Self {
        Self { communicator, lost, cause, late: Vec::new(), can_rebuild: false, can_replace: false }
    }
}

/// The cause where a thread panicked.
pub(crate) const PANICKED: &str = "its thread panicked";
/// How the cause begins where the rank that is told is the one that is lost.
const GIVEN_UP: &str = "the others gave it up, which is this rank";
/// The same for rank 0 of a job, which cannot be replaced.
const FIRST_GIVEN_UP: &str = "the others gave it up, which is this rank and keeps what they meet at";

/// The cause where the rank that is told is the one that is lost: this rank of the job, which the others gave up.
pub(crate) fn given_up_cause(rank: u32, why: &str) -> String {
    format!("{}: {why}", if rank == 0 { FIRST_GIVEN_UP } else { GIVEN_UP })
}

/// What a rank of the job does that the others gave up.
pub(crate) fn given_up_next(rank: u32) -> &'static str {
    match rank {
        0 => "end it, and start the job again",
        _ => "end it, and start a replacement",
    }
}

fn which(told: &CommunicatorRankLost) -> String {
    let CommunicatorRankLost { communicator, lost, .. } = told;
    match &told.late[..] {
        [] => format!("rank {lost} of communicator {communicator} is lost"),
        [late] => format!(
            "rank {late} of communicator {communicator} was late, and rank {lost}, which waited for it, is lost"
        ),
        late => format!(
            "ranks {} of communicator {communicator} were late, and rank {lost}, which waited for them, is lost",
            listed(late)
        ),
    }
}

fn next(told: &CommunicatorRankLost) -> &'static str {
    let cause = &told.cause;
    match told.can_rebuild {
        true if !told.can_replace => {
            "the others go on after `DeviceCommunicator::rebuild`; it is rank 0 of the job, which cannot be replaced"
        }
        true => {
            "the others go on after `DeviceCommunicator::rebuild`, or after `rebuild_replaced` with a replacement"
        }
        false if cause.starts_with(FIRST_GIVEN_UP) => {
            "was its process stopped, or its device lost? end it, and start the job again"
        }
        false if cause.starts_with(GIVEN_UP) => {
            "was its process stopped, or its device lost? end it, and start a replacement"
        }
        false if cause.starts_with(PANICKED) => {
            "it keeps what the ranks meet at: `DeviceCommunicator::rebuild` works while its process lives, and without that they cannot go on: start the job again"
        }
        false => "it kept what the ranks meet at, so they cannot go on: start the job again",
    }
}
