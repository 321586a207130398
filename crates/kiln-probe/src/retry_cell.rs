//! A cell that is filled once, by an attempt that may fail.
//!
//! Success is kept for ever and read with one atomic load. A failure is shared with those who waited for the same
//! attempt and then forgotten, so that the next caller tries again.

use std::sync::OnceLock;

use crate::error::ProbeError;
use crate::single_flight::SharedAttempt;

/// A value that is built at most once.
pub struct RetryCell<T, E> {
    value: OnceLock<T>,
    attempt: SharedAttempt<Result<(), E>>,
}

impl<T, E: Clone + From<ProbeError>> Default for RetryCell<T, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, E: Clone + From<ProbeError>> RetryCell<T, E> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self { value: OnceLock::new(), attempt: SharedAttempt::new() }
    }

    /// The value, if it was built.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, built now if it was not built before.
    ///
    /// # Errors
    /// What `build` says, here or in the thread whose attempt was waited for.
    pub fn get_or_try_init(&self, build: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let mut build = Some(build);
        loop {
            if let Some(value) = self.value.get() {
                return Ok(value);
            }
            self.attempt.join(|| self.fill(&mut build))??;
        }
    }

    /// Runs in one thread at a time.
    fn fill(&self, build: &mut Option<impl FnOnce() -> Result<T, E>>) -> Result<(), E> {
        // Another thread may have filled the cell between the look at it and the attempt.
        if self.value.get().is_some() {
            return Ok(());
        }
        // The builder is still there: it is taken by this thread's only attempt, which fills the cell or fails.
        if let Some(build) = build.take() {
            let _ = self.value.set(build()?);
        }
        Ok(())
    }
}
