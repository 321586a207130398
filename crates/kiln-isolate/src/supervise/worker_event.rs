//! What happens to workers, for a program that observes them.

use kiln_driver::Error;

use super::object_counts::ObjectCounts;
use crate::client::loss_cause::LossCause;

/// Something that happened to a worker. See [`IsolationConfig::observe`](crate::IsolationConfig::observe).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// A worker is ready.
    Started {
        /// Its process id.
        process: u32,
        /// Whether it is the standby.
        standby: bool,
    },
    /// The standby has the client's objects, as far as they can be made ahead of time.
    Prepared {
        /// Its process id.
        process: u32,
        /// What it has.
        has: ObjectCounts,
    },
    /// The standby could not make an object. A takeover tries again.
    Unprepared {
        /// Its process id.
        process: u32,
        /// The object.
        what: String,
        /// Why it could not.
        error: Error,
    },
    /// The worker in use is lost; calls return the cause.
    Lost {
        /// Why.
        cause: LossCause,
    },
    /// Another worker has taken over.
    TakenOver {
        /// The new generation.
        generation: u64,
    },
    /// The device was closed and its worker has ended.
    Closed {
        /// What the device found wrong with its use; empty if nothing, `None` if the worker did not exit as it was asked to.
        findings: Option<String>,
    },
}
