//! `RecoveryControl`: lets a caller rebuild a lost device itself.

use std::fmt;
use std::sync::{Arc, Weak};

use kiln_order::DependencyTracker;

use crate::device_state::{Cause, ForbiddenChange, Keep, Phase, StateCell};
use crate::error::{Misuse, Result};
use crate::ids::Generation;
use crate::runtime::DeviceRuntime;

/// The right to decide what becomes of a lost device.
///
/// This is the seam for a driver that can build its context again, in a new worker process for example, with the memory still mapped
/// where it was. While a control exists a lost device stays Lost instead of becoming Failed; the control is told by a
/// [watch](DeviceRuntime::watch) and then does this, in this order:
///
/// 1. [`rebuilding`](Self::rebuilding), and everything the new context needs: pages mapped at their old addresses, streams, events and
///    modules under their old handles;
/// 2. [`rebuilt`](Self::rebuilt), which begins the next generation: work of the last one that was not known to be done fails with
///    the cause, and so do handles to blocks that it was to write; all other handles stay valid;
/// 3. or [`give_up`](Self::give_up).
///
/// It does not hold the runtime. A control that is dropped while the device is lost gives up, so that no waiter waits for ever.
#[must_use = "dropping it gives the decision back"]
pub struct RecoveryControl {
    state: Arc<StateCell>,
    tracker: Weak<DependencyTracker>,
}

impl DeviceRuntime {
    /// Takes the decision about a lost device.
    ///
    /// # Errors
    /// If it has a control already.
    pub fn control_recovery(&self) -> Result<RecoveryControl> {
        if self.inner().state().set_controlled(true) {
            let tracker = Arc::downgrade(self.inner().tracker_handle());
            Ok(RecoveryControl { state: self.inner().state().clone(), tracker })
        } else {
            Err(Misuse::RecoveryControlled.into())
        }
    }
}

impl RecoveryControl {
    /// The context is being built again.
    ///
    /// # Errors
    /// If the device is not lost.
    pub fn rebuilding(&self) -> std::result::Result<(), ForbiddenChange> {
        self.state.change(Phase::Rebuilding).map(|_| ())
    }

    /// The new context is there. Returns its generation.
    ///
    /// # Errors
    /// If the device was not being rebuilt.
    pub fn rebuilt(&self, keep: Keep) -> std::result::Result<Generation, ForbiddenChange> {
        self.expect_rebuilding(Phase::Ready)?;
        if keep == Keep::Nothing {
            self.state.keep_nothing();
        }
        self.state.decide();
        // The new context runs nothing: what the old one left unfinished has no waiters any more.
        if let Some(tracker) = self.tracker.upgrade() {
            tracker.forget_unfinished();
        }
        self.state.change(Phase::Ready).map(|status| status.generation)
    }

    /// The new context was lost too, before it was ready.
    ///
    /// # Errors
    /// If the device was not being rebuilt.
    pub fn lost_again(&self, error: kiln_driver::Error) -> std::result::Result<(), ForbiddenChange> {
        self.expect_rebuilding(Phase::Lost)?;
        self.state.lose_again(Cause::new(error), self.tracker.upgrade().as_deref());
        Ok(())
    }

    /// There is no way back, and this is why.
    pub(crate) fn give_up_because(self, why: &str) {
        if matches!(self.state.phase(), Phase::Lost | Phase::Rebuilding) {
            self.state.fail_because(why);
        }
    }

    /// There is no way back.
    pub fn give_up(self) {
        drop(self);
    }

    fn expect_rebuilding(&self, to: Phase) -> std::result::Result<(), ForbiddenChange> {
        match self.state.phase() {
            Phase::Rebuilding => Ok(()),
            from => Err(ForbiddenChange { from, to }),
        }
    }
}

impl Drop for RecoveryControl {
    fn drop(&mut self) {
        self.state.set_controlled(false);
        if matches!(self.state.phase(), Phase::Lost | Phase::Rebuilding) {
            self.state.fail();
        }
    }
}

impl fmt::Debug for RecoveryControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "control of a device: {}", self.state.status())
    }
}
