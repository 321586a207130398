//! What the runtimes of a prober are built with. It can change while none of them is open.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runtime::RuntimeConfig;

#[derive(Default)]
pub(super) struct SharedConfig {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    config: RuntimeConfig,
    /// Runtimes that are being built with it.
    building: usize,
}

/// A runtime is being built; the configuration stays until this is dropped.
pub(super) struct Building<'a> {
    shared: &'a SharedConfig,
    pub(super) config: RuntimeConfig,
}

impl SharedConfig {
    /// Changes it, unless a runtime is being built or `in_use` names one that is open.
    pub(super) fn set<T>(
        &self,
        config: RuntimeConfig,
        in_use: impl FnOnce() -> Option<T>,
    ) -> Result<(), Option<T>> {
        let mut state = self.state();
        if state.building > 0 {
            return Err(None);
        }
        match in_use() {
            Some(open) => Err(Some(open)),
            None => {
                state.config = config;
                Ok(())
            }
        }
    }

    /// Takes it to build a runtime.
    pub(super) fn take(&self) -> Building<'_> {
        let mut state = self.state();
        state.building += 1;
        Building { shared: self, config: state.config.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        self.shared.state().building -= 1;
    }
}
