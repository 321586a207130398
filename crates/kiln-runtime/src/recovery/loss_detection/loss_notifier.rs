//! How a runtime hears that its worker is gone, from the first call that notices.

use std::sync::{Arc, OnceLock, Weak};

use kiln_order::DependencyTracker;

use crate::device_state::{Cause, Phase, StateCell};

/// The way from a lost worker to the state of its device. Made before the device is, and connected when there is a runtime.
#[derive(Default)]
pub(crate) struct LossNotifier {
    target: OnceLock<(Weak<StateCell>, Weak<DependencyTracker>)>,
}

impl LossNotifier {
    pub(crate) fn connect(&self, state: &Arc<StateCell>, tracker: &Arc<DependencyTracker>) {
        // There is one runtime for each device, so this is the first call.
        let _ = self.target.set((Arc::downgrade(state), Arc::downgrade(tracker)));
    }

    /// The worker is gone.
    pub(crate) fn worker_lost(&self, cause: &kiln_isolate::LossCause) {
        let Some((state, tracker)) = self.target.get() else { return };
        let (Some(state), Some(tracker)) = (state.upgrade(), tracker.upgrade()) else { return };
        // While one is being replaced only its replacement decides; a new one that is gone again is noticed afterwards.
        if matches!(state.phase(), Phase::Starting | Phase::Ready | Phase::ShuttingDown) {
            state.lose(|| Cause::found(cause.error("worker"), &tracker), Some(&tracker));
        }
    }
}
