//! The order of work across streams: what `kiln-order` exports, under the name it has in this crate.

pub use kiln_order::{
    AccessHistory, Clock, DependencyTracker, EventLease, Hold, HostClock, LaunchSites, MAX_EVENTS,
    MAX_STREAMS, Mutation, OverlappingWrites, PendingSubmission, Point, Recorded, Recording, Stamp, Stamps,
    StepRefusal, StreamCount, StreamKey, StreamState, SubmitError, Use, Uses, Waits, held_here, holds_any,
    put_off,
};
