//! The laws on the simulator with threads of the host.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod simulated;

use kiln_conform::Subject;
use kiln_sim::Mode;

fn subject() -> Subject {
    simulated::subject("the simulator, threaded", |_| Mode::Threaded { workers: 2 }).rounds(4)
}

kiln_conform::laws!(subject());
