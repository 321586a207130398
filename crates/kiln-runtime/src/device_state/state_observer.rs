//! Who writes down what becomes of a device.

use std::fmt::Display;
use std::time::Duration;

use super::state_cell::StateCell;
use super::status::Status;
use crate::ids::Generation;

/// Is told of every change at once, on the thread that makes it. It may be called under any lock of ours, so it takes none but its own and
/// calls nothing that waits.
pub(crate) trait StateObserver: Send + Sync {
    /// The state is another one. The state is locked: it must not be asked here.
    fn changed(&self, status: &Status);

    /// Unfinished work was submitted again, which took so long and has just ended.
    fn resubmitted(&self, took: Duration);

    /// A generation has ended, and this is known of it: a text of several lines. It is told only where that is asked for.
    fn post_mortem(&self, ended: Generation, text: &dyn Display);
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

    /// What is known of a generation that has ended.
    pub(crate) fn note_post_mortem(&self, ended: Generation, text: &dyn Display) {
        if let Some(observer) = self.observer.get() {
            observer.post_mortem(ended, text);
        }
    }
}
