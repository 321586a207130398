//! Devices in worker processes: what a runtime keeps and loses when a worker faults, hangs or is killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod between;
mod endings;
mod faults;
mod kernels;
mod lost_set;
mod mended;
mod read_only;
mod replay;
mod replay_kernels;
mod replay_oracle;
mod replay_scene;
mod rig;
mod script;
mod table;
mod truth;
mod waiters;
mod wild;

/// The worker process; in the test run itself it does nothing.
#[test]
fn worker() {
    kiln::worker_entry();
}
