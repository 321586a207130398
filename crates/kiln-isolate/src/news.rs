//! What happens to workers, for those who want to know.

use kiln_driver::Error;

use crate::cause::Cause;
use crate::tally::Tally;

/// Something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum News {
    /// A worker is ready.
    Started {
        /// Its process.
        process: u32,
        /// Whether it only waits to take over.
        standby: bool,
    },
    /// A standby has what the client has, as far as it can be had ahead of time.
    Prepared {
        /// Its process.
        process: u32,
        /// What it has.
        has: Tally,
    },
    /// A standby could not have something. It is given what it lacks in a takeover, or is replaced there.
    Unprepared {
        /// Its process.
        process: u32,
        /// What it was to have.
        what: String,
        /// Why it could not.
        error: Error,
    },
    /// The worker in use is no longer there; calls answer with the cause.
    Lost {
        /// Why.
        cause: Cause,
    },
    /// Another worker has taken over.
    TakenOver {
        /// The new generation.
        generation: u64,
    },
    /// The last worker ended because the device was closed.
    Closed {
        /// What the device had to say against its use; empty if nothing, none if the worker did not end well.
        findings: Option<String>,
    },
}
