//! What the collectives of a communicator are told when its library failed.

/// The library of a communicator failed, such as by a connection that is gone. What was unfinished was ended; the device goes on.
///
/// Tickets of unfinished collectives fail with it, and so do those of work behind them: `error.downcast_ref::<CommunicatorFailed>()`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("communicator {communicator} failed: {cause}; make another one of the ranks that are left")]
pub struct CommunicatorFailed {
    /// The communicator, in short.
    pub communicator: String,
    /// What the library said.
    pub cause: String,
}
