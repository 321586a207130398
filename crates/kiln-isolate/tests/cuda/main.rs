//! What only a CUDA device can show: the laws in a worker process, and checksums made on the device.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod checksum;
mod laws;

/// The test that is the worker process.
const WORKER: &str = "worker";

#[test]
#[ignore = "helper process"]
fn worker() {
    kiln_isolate::worker_entry();
}
