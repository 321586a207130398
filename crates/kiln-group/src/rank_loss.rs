//! What the ranks of a communicator are told when one of them is lost.

/// A rank of a communicator is lost. What needs it was ended; the device of the rank that is told goes on.
///
/// Tickets of unfinished collectives fail with it, and so do those of work behind them: `error.downcast_ref::<CommunicatorRankLost>()`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("rank {lost} of communicator {communicator} is lost: {cause}; {}", next(*.can_rebuild))]
pub struct CommunicatorRankLost {
    /// The communicator, in short.
    pub communicator: String,
    /// The rank that is lost.
    pub lost: u32,
    /// What was seen of it.
    pub cause: String,
    /// Whether the others can go on: not where the lost rank kept what the ranks of the job meet at.
    pub can_rebuild: bool,
}

fn next(can_rebuild: bool) -> &'static str {
    match can_rebuild {
        true => "the others go on after `DeviceCommunicator::rebuild`",
        false => "it kept what the ranks meet at, so they cannot go on: start the job again",
    }
}
