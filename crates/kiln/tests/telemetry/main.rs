//! Counters, the page for Prometheus, spans and device time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod counts;
#[path = "../order/kernels.rs"]
mod kernels;
mod page;
mod parser;
mod rig;
mod spans;
mod time;
