//! Order across streams, by arithmetic.
//!
//! Each stream numbers its submissions; a [`Stamp`] is (stream, number). A block remembers the stamps of its last writes
//! and of the reads since, per range of bytes ([`AccessHistory`]). Each stream keeps a [`Clock`]: what it is already ordered after.
//! From these the planner ([`Waits`]) decides with integer compares what a submission still has to wait for; only a new edge
//! costs an event and a wait, and joining clocks makes later edges free. The host has a clock too ([`HostClock`]): what
//! the host waited for needs no event any more.
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

mod access_history;
mod clock;
mod dependency_tracker;
#[cfg(test)]
mod dependency_tracker_tests;
mod event_pool;
#[cfg(test)]
mod event_pool_tests;
mod freeze;
mod held_streams;
mod history_guards;
mod host_wait;
mod launch_sites;
mod mutation;
mod pending_submission;
#[cfg(test)]
mod queue_driver;
mod recording;
mod stamp;
mod step;
#[cfg(test)]
mod step_tests;
mod stream_counters;
mod stream_keys;
mod stream_state;
#[cfg(test)]
mod stream_state_tests;
mod submit_error;
mod sync;
mod uses;
mod waits;

pub use access_history::AccessHistory;
pub use clock::{Clock, HostClock};
pub use dependency_tracker::DependencyTracker;
pub use event_pool::{EventLease, MAX_EVENTS};
pub use held_streams::{Hold, held_here, holds_any, put_off};
pub use launch_sites::LaunchSites;
pub use mutation::Mutation;
pub use pending_submission::PendingSubmission;
pub use recording::Recording;
pub use stamp::{MAX_STREAMS, Stamp, Stamps, StreamKey};
pub use step::{OverlappingWrites, StepRefusal, Use};
pub use stream_counters::{StreamCount, StreamCounters, StreamCounts};
pub use stream_state::{Point, Recorded, StreamState};
pub use submit_error::SubmitError;
pub use uses::Uses;
pub use waits::Waits;
