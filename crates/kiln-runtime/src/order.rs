//! The order of work across streams: what `kiln-order` exports, under the name it has in this crate.

pub use kiln_order::{
    Begun, Clock, EventLease, Hold, HostClock, Lane, LaunchSites, MAX_EVENTS, MAX_STREAMS, Mutation,
    OverlappingWrites, Point, Recorded, Recording, Stamp, Stamps, StepRefusal, StreamCount, StreamKey,
    SubmitError, Track, Tracker, Use, Uses, Waits, held_here, holds_any, put_off,
};
