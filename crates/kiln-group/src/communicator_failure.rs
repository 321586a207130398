//! What the collectives of a communicator are told when its library failed.

use crate::rank_list::named;

/// The library of a communicator failed, such as by a connection that is gone. What was unfinished was ended; the device goes on.
///
/// Tickets of unfinished collectives fail with it, and so do those of work behind them: `error.downcast_ref::<CommunicatorFailed>()`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("communicator {communicator} failed: {cause};{} make another one of the ranks that are left", blamed(.suspects))]
pub struct CommunicatorFailed {
    /// The communicator, in short.
    pub communicator: String,
    /// What the library said.
    pub cause: String,
    /// Ranks that may be behind it, though they answer: of two ranks the other one, if the library has lost the connection to it.
    pub suspects: Vec<u32>,
}

fn blamed(suspects: &[u32]) -> String {
    match suspects {
        [] => String::new(),
        ranks => format!(" {} may be the cause;", named(ranks)),
    }
}
