//! Who writes down what becomes of a device.

use std::time::Duration;

use super::state_cell::StateCell;
use super::status::Status;

/// Is told of every change at once, on the thread that makes it. It may be called under any lock of ours, so it takes none but its own and
/// calls nothing that waits.
pub(crate) trait StateObserver: Send + Sync {
    /// The state is another one. The state is locked: it must not be asked here.
    fn changed(&self, status: &Status);

    /// Unfinished work was submitted again, which took so long and has just ended.
    fn resubmitted(&self, took: Duration);
}

impl StateCell {
    /// From here on, that one is told of changes. There is one at the most.
    pub(crate) fn observe(&self, observer: Box<dyn StateObserver>) {
        // A runtime is recorded once.
        let _ = self.observer.set(observer);
    }

    /// Unfinished work was submitted again, which took so long and has just ended.
    pub(crate) fn note_resubmitted(&self, took: Duration) {
        if let Some(observer) = self.observer.get() {
            observer.resubmitted(took);
        }
    }
}
