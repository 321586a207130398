//! Devices in worker processes: what a runtime keeps and loses when a worker faults, hangs or is killed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "../alone/mod.rs"]
mod alone;
mod arena;
mod between;
mod blocks;
mod ended_work;
mod endings;
mod faults;
mod findings;
mod held;
mod kernels;
mod lost_set;
mod mended;
mod read_only;
mod replay;
mod replay_kernels;
mod replay_oracle;
mod replay_scene;
#[path = "../../../kiln-isolate/tests/rig/held.rs"]
mod resources;
mod retryable;
mod rig;
mod script;
mod table;
mod tensor_maps;
mod told_calls;
mod truth;
mod variables;
mod waiters;
mod wild;

/// The worker process.
#[test]
#[ignore = "helper process"]
fn worker() {
    kiln::worker_entry();
}
