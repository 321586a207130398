//! The virtual clock.

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::Clock;

use crate::schedule::machine_core::Core;

/// The clock of a machine.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    core: Arc<Core>,
}

impl VirtualClock {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

impl Clock for VirtualClock {
    fn number(&self) -> u64 {
        self.core.number
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.core.lock().now_ns)
    }

    fn sleep(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.core.lock();
        state.note_call();
        state.pass(nanoseconds);
        loop {
            let (next, moved) = self.core.drift(state);
            state = next;
            if !moved {
                return;
            }
        }
    }
}
