//! The laws on the simulator with threads of the host.

use kiln_conform::Subject;
use kiln_sim::Mode;

use crate::simulated;

fn subject() -> Subject {
    simulated::subject("the simulator, threaded", |_| Mode::Threaded { workers: 2 }).rounds(4)
}

kiln_conform::laws!(subject());
