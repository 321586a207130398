//! Systems without worker processes: the device cannot be opened, and says why.

use std::sync::Arc;

use super::config::IsolationConfig;
use super::start_error::WorkerStartError;

/// A device whose driver runs in a worker process, which needs Linux. There is none on this system.
#[derive(Clone, Copy, Debug)]
pub enum IsolatedDevice {}

impl IsolatedDevice {
    /// Returns [`WorkerStartError::Unsupported`].
    ///
    /// # Errors
    /// Always.
    pub fn open(_: IsolationConfig) -> Result<Arc<Self>, WorkerStartError> {
        Err(WorkerStartError::Unsupported)
    }
}

/// Returns at once: no process is started as a worker on this system.
pub fn worker_entry() {}
