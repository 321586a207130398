//! Descriptors, processes, threads and mappings: what an isolated device holds, what it does without, and what it leaves.
//!
//! Each test counts what this process holds or changes its limits, so one runs at a time: it begins with [`rig::turn`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and a helper speaks to its test"
)]

#[path = "../rig/mod.rs"]
mod rig;

mod limits;
mod programs;
mod standby;
mod steps;

#[test]
#[ignore = "helper process"]
fn worker() {
    rig::worker();
}
