//! The laws on the simulator, with many seeds.

use kiln_conform::Subject;
use kiln_sim::Mode;

use crate::simulated;

const SEEDS: u64 = 24;

fn subject() -> Subject {
    simulated::subject("the simulator, seeded", Mode::Seeded).rounds(SEEDS)
}

kiln_conform::laws!(subject());
