//! Requests in line: the queue of a service, and a request with the place its answer goes to.

mod queued_request;
mod request_queue;

pub(crate) use queued_request::{Elsewhere, Job, QueuedRequest, guarded, shielded};
pub(crate) use request_queue::{Next, RequestQueue};
