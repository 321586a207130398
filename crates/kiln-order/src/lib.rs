//! Order across streams: dependencies are tracked with vector clocks.
//!
//! Each stream numbers its submissions; a [`Stamp`] is a stream and a number. A block of memory remembers the stamps of its last writes
//! and of the reads since, for each range of bytes ([`AccessHistory`]). Each stream keeps a [`StreamClock`]: what it is already ordered after.
//! Whether a new submission must wait for an old one is then a comparison of integers. Only a new edge costs an event and a wait, and
//! joining clocks makes later edges free. The host has a clock too ([`HostClock`]): what the host has waited for needs no event.
//!
//! ```text
//!   enter the stream ─ lock the blocks ─ plan, publish ─ unlock ─ queue waits ─ queue the work ─ leave
//!     (its state)        (all or none)     (integers)            (only new edges)
//! ```
//!
//! # The rules
//!
//! - Allocation counts as the first write.
//! - A read waits for the last write. A write waits for the last write and for all reads since. A free waits for both.
//! - A wait for the same stream, or for something that is ordered before already or known to be done, is left out.
//! - A submission plans and publishes in one step: the next submission that uses one of its blocks sees all of its stamps or none.
//!
//! # The contract
//!
//! - Any thread may submit to any stream at any time. A refused submission has queued, stamped and numbered nothing.
//! - Locks are taken in this order: one stream's entry; blocks by address; a stream's recorded points, for moments. The driver is called
//!   under the first alone.
//! - There are at most [`MAX_STREAMS`] streams at once. A key passes to another stream only where that loses no edge.
//! - Where events run out, the host waits in their place.
//!
//! # In reading order
//!
//! [`Stamp`], [`Stamps`], [`StreamKey`] and [`StreamRef`]: points in the work of streams. [`StreamClock`] and [`HostClock`]: what is ordered
//! before, and what is done. [`AccessHistory`] and [`Waits`]: what a block remembers, and what follows for a submission.
//! [`DependencyTracker`] with [`StreamState`], [`Use`] and [`PendingSubmission`]: the order of one device. [`Order`]: what memory asks;
//! [`DriverOrder`] answers it without a runtime. [`Recording`]: when events are recorded. [`Hold`]: streams that a thread stays inside
//! of between two calls. [`StreamCounters`] and [`LaunchSites`]: what each stream did. [`WaitObserver`]: told of waits.
//!
//! # What it does not do
//!
//! It knows commands only as something a driver takes, and neither kernels nor buffers. It frees no memory and repairs no device. Which
//! bytes a submission uses is what its caller says.

mod access_history;
mod block_uses;
mod clock_table;
mod dependency_tracker;
#[cfg(test)]
mod dependency_tracker_tests;
#[cfg(feature = "mutations")]
mod disabled_rule;
mod event_policy;
mod event_pool;
#[cfg(test)]
mod event_pool_tests;
mod event_shortage;
mod held_streams;
mod history_guards;
mod host_wait;
mod launch_sites;
#[cfg(test)]
mod mock_driver;
mod order_impl;
mod order_trait;
mod order_without_runtime;
mod pending_submission;
mod plan_and_publish;
#[cfg(test)]
mod plan_and_publish_tests;
mod rules;
mod stamp;
mod stream_counters;
mod stream_key;
mod stream_registry;
mod stream_state;
#[cfg(test)]
mod stream_state_tests;
mod submission_pause;
mod submit_error;
mod sync_shim;
mod vector_clock;
mod wait_observer;
mod wait_planner;

pub use access_history::AccessHistory;
pub use block_uses::Uses;
pub use dependency_tracker::DependencyTracker;
#[cfg(feature = "mutations")]
pub use disabled_rule::Mutation;
pub use event_policy::Recording;
pub use event_pool::{EventLease, MAX_EVENTS};
pub use held_streams::{Hold, held_here, holds_any, put_off};
pub use launch_sites::LaunchSites;
pub use order_trait::Order;
pub use order_without_runtime::DriverOrder;
pub use pending_submission::PendingSubmission;
pub use plan_and_publish::{OverlappingWrites, StepRefusal, Use};
pub use rules::Rules;
pub use stamp::{Stamp, Stamps};
pub use stream_counters::{StreamCount, StreamCounters, StreamCounts};
pub use stream_key::{MAX_STREAMS, NoSuchStreamKey, StreamKey, StreamRef};
pub use stream_state::{Point, Recorded, StreamState};
pub use submit_error::SubmitError;
pub use vector_clock::{HostClock, StreamClock};
pub use wait_observer::{Need, NeedReason, WaitObserver};
pub use wait_planner::Waits;
