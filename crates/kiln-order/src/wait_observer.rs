//! Told of the waits between streams.

use crate::stamp::Stamp;

/// Told of every wait that a stream is made to do for another, by the thread that submits, while it is inside of the stream. It must
/// not submit anything itself.
pub trait WaitObserver: Send + Sync {
    /// A submission waits for another one that it needs. The event in between covers the work of that stream up to number `covers`.
    fn waits(&self, waiter: Stamp, needed: Stamp, covers: u64);
}
