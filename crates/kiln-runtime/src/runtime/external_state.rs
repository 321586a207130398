//! Device state that the caller sets, for a device whose recovery is done elsewhere.

use std::sync::Arc;
use std::time::Duration;

use super::state_watch::StateWatch;
use crate::device_state::{Cause, Phase, StateCell, Status};
use crate::wake::WakeSignal;

/// A state that follows the one of a device. Those who watch it are told of each change by the thread that makes it.
pub struct FollowedState {
    cell: Arc<StateCell>,
}

impl FollowedState {
    /// How it is now.
    pub fn status(&self) -> Status {
        self.cell.status()
    }

    /// What it is now.
    pub fn phase(&self) -> Phase {
        self.cell.phase()
    }

    /// A watch over it.
    pub fn watch(&self) -> StateWatch {
        StateWatch::new(self.cell.clone(), None)
    }

    /// Waits until something is true of the status; see [`StateWatch::wait_until`].
    pub fn wait_until(&self, want: impl Fn(&Status) -> bool, limit: Option<Duration>) -> Status {
        self.cell.wait_until(want, limit)
    }

    /// Changes to a phase that carries no cause. What cannot follow the phase of now, such as anything after the end, is ignored.
    pub fn change(&self, to: Phase) {
        let _ = self.cell.change(to);
        self.cell.deliver();
    }

    /// The device is lost, and may come back.
    pub fn lose(&self, cause: Cause) {
        self.cell.set_controlled(true);
        self.cell.lose_whenever(cause);
        self.cell.deliver();
    }

    /// The lost device is given up.
    pub fn fail(&self) {
        self.cell.fail();
        self.cell.deliver();
    }
}

impl Default for FollowedState {
    fn default() -> Self {
        Self { cell: Arc::new(StateCell::new(Arc::new(WakeSignal::default()))) }
    }
}
