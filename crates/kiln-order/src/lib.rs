//! Order across streams, by arithmetic.
//!
//! Each stream numbers its submissions; a [`Stamp`] is (stream, number). A block remembers the stamps of its last writes
//! and of the reads since, per range of bytes ([`Track`]). Each stream keeps a [`Clock`]: what it is already ordered after.
//! From these the planner ([`Waits`]) decides with integer compares what a submission still has to wait for; only a new edge
//! costs an event and a wait, and joining clocks makes later edges free. The host has a clock too ([`HostClock`]): what
//! somebody waited for needs no event any more.
//!
//! The rules: allocation counts as the first write; a read waits for the last write; a write waits for the last write and
//! all reads since; a free waits for both; waits on the same stream or on something already ordered vanish.
//!
//! ```text
//!   enter the stream ─ lock the blocks ─ plan, publish ─ unlock ─ queue waits ─ queue the work ─ leave
//!        (its own)       (all or none)     (integers)              (only for new edges)
//! ```
//!
//! Locks, in this order: one stream's entry; blocks by address; a stream's points, for moments. The driver is called under
//! the first alone.

mod clock;
mod eventless;
mod events;
#[cfg(test)]
mod events_tests;
mod freeze;
mod guards;
mod held;
mod lane;
#[cfg(test)]
mod lane_tests;
mod launch_sites;
mod mutation;
mod places;
mod plan;
#[cfg(test)]
mod queues;
mod stamp;
mod step;
#[cfg(test)]
mod step_tests;
mod stream_counters;
#[cfg(test)]
mod submission_tests;
mod submit_error;
mod sync;
mod track;
mod tracker;
mod uses;

pub use clock::{Clock, HostClock};
pub use events::{EventLease, MAX_EVENTS};
pub use held::{Hold, held_here, holds_any, put_off};
pub use lane::{Lane, Point, Recorded};
pub use launch_sites::LaunchSites;
pub use mutation::Mutation;
pub use plan::Waits;
pub use stamp::{MAX_STREAMS, Stamp, Stamps, StreamKey};
pub use step::{OverlappingWrites, StepRefusal, Use};
pub use stream_counters::{StreamCount, StreamCounters, StreamCounts};
pub use submit_error::SubmitError;
pub use track::Track;
pub use tracker::{Begun, Recording, Tracker};
pub use uses::Uses;
