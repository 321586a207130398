//! Stamps and stream keys, as tickets and buffers name them, and when events are recorded.

#[doc(hidden)]
pub use kiln_order::DependencyTracker;
/// For this project's own tests: a rule of the order that a runtime is built without.
#[cfg(feature = "mutations")]
pub use kiln_order::Mutation;
pub use kiln_order::{MAX_EVENTS, MAX_STREAMS, Recording, Stamp, Stamps, StreamClock, StreamKey};
