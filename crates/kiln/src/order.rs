//! Stamps and stream keys, as tickets and buffers name them, and when events are recorded.

pub use kiln_order::{Clock, MAX_EVENTS, MAX_STREAMS, Recording, Stamp, Stamps, StreamKey};
#[doc(hidden)]
pub use kiln_order::{DependencyTracker, Mutation};
