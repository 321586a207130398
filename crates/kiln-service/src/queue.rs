//! Requests in line: the queue of a service, and a request with the place its answer goes to.

mod desk;
mod envelope;

pub(crate) use desk::{Desk, Next};
pub(crate) use envelope::{Elsewhere, Envelope, Job, guarded, shielded};
