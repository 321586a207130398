//! The laws on the simulator with threads of the host.

mod simulated;

use kiln_conform::Subject;
use kiln_sim::Mode;

fn subject() -> Subject {
    simulated::subject("the simulator, threaded", |_| Mode::Threaded { workers: 2 }).rounds(4)
}

kiln_conform::laws!(subject());
