//! Devices that are lost, watched, shut down and rebuilt, and everybody who waits for them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod executor;
mod faults;
mod futures;
#[path = "../order/kernels.rs"]
mod kernels;
mod rebuild;
mod scenario;
mod service;
mod service_ends;
mod shutdown;
mod watch;
