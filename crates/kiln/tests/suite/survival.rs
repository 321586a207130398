//! Devices that are lost, watched, shut down and rebuilt, and every caller that waits for them.

mod drain;
mod executor;
mod faults;
mod fleet;
mod futures;
mod rebuild;
mod refused_requests;
mod retryable;
mod scenario;
mod service;
mod service_ends;
mod shutdown;
mod watch;
