//! The runtime of one device: opened by the first request, and again by the next one once it is over.
//!
//! A runtime that failed or was shut down takes no more work, so it is not given out. Its references stay valid for those
//! who hold them. A failed attempt is told to everyone who waited for it and is not kept.

use std::sync::{PoisonError, RwLock};

use kiln_probe::SharedAttempt;

use crate::error::Result;
use crate::runtime::DeviceRuntime;

pub(super) struct RuntimeCell {
    /// The runtime that was opened last.
    last: RwLock<Option<&'static DeviceRuntime>>,
    attempt: SharedAttempt<Result<&'static DeviceRuntime>>,
}

impl RuntimeCell {
    pub(super) const fn new() -> Self {
        Self { last: RwLock::new(None), attempt: SharedAttempt::new() }
    }

    /// The runtime, if it is open and takes work, or will again.
    pub(super) fn get(&self) -> Option<&'static DeviceRuntime> {
        self.last().filter(|runtime| !is_over(runtime))
    }

    /// The runtime, opened now if there is none. `open` gets the last one, which is over, and answers with a guard that is held
    /// until the new one is in place.
    ///
    /// # Errors
    /// What `open` answers, here or in the thread whose attempt was waited for.
    pub(super) fn get_or_open<G>(
        &self,
        open: impl FnOnce(Option<&'static DeviceRuntime>) -> Result<(&'static DeviceRuntime, G)>,
    ) -> Result<&'static DeviceRuntime> {
        if let Some(runtime) = self.get() {
            return Ok(runtime);
        }
        self.attempt.join(|| {
            // Another thread may have opened it between the look and the attempt.
            if let Some(runtime) = self.get() {
                return Ok(runtime);
            }
            let (opened, _guard) = open(self.last())?;
            *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            Ok(opened)
        })?
    }

    fn last(&self) -> Option<&'static DeviceRuntime> {
        *self.last.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a runtime takes no work any more. One whose device is lost and may come back is not over.
pub(crate) fn is_over(runtime: &DeviceRuntime) -> bool {
    runtime.status().phase().is_over()
}
