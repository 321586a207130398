//! An isolated device on the simulator and on a stand-in for the CUDA driver: the laws, takeovers, protection and security.
//!
//! These tests run in parallel. Tests that count what the process holds are in `resources`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says why"
)]

#[allow(dead_code, reason = "these tests need some of the machines only")]
#[macro_use]
#[path = "../../../kiln-cuda/tests/on_fake/machine.rs"]
mod machine;
#[path = "../rig/mod.rs"]
mod rig;

mod laws;
mod on_fake;
mod protection;
mod security;
mod shared_streams;
mod stopped;
mod takeover;

#[test]
#[ignore = "helper process"]
fn worker() {
    rig::worker();
}
