//! Device states, worker processes, and what survives a fault.
//!
//! A device is ready, lost, being rebuilt, failed or shut down ([`Phase`]); [`StateWatch`] follows it. With [`Isolation::Process`] the
//! context lives in a worker process, and a lost worker is replaced.

pub use crate::state::*;
pub use kiln_runtime::recovery::*;
