//! The laws on the simulator, with many seeds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod simulated;

use kiln_conform::Subject;
use kiln_sim::Mode;

const SEEDS: u64 = 24;

fn subject() -> Subject {
    simulated::subject("the simulator, seeded", Mode::Seeded).rounds(SEEDS)
}

kiln_conform::laws!(subject());
