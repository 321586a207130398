//! A backend in a static.

use kiln_probe::RetryCell;

use crate::backend::BackendParts;
use crate::error::{Error, Result};
use crate::prober::{self, Prober};

/// A cell for a backend that is probed and built by the first who needs it.
///
/// Success is kept for the life of the process and costs one atomic load from then on. Callers who come while the
/// backend is being built wait for that attempt and share its answer. A failure is not kept: the next caller tries
/// again. A build step that panics ends its thread and no other.
///
/// ```
/// use kiln::backend::{BackendContext, CachedBackend};
///
/// static SOLVER: CachedBackend<BackendContext> = CachedBackend::new();
///
/// fn solver() -> kiln::Result<&'static BackendContext> {
///     SOLVER.get_or_probe("solver", |parts| Ok(BackendContext::from_parts(parts)))
/// }
///
/// # kiln::probe::set_policy(kiln::Policy::Simulate)?;
/// let first: *const _ = solver()?;
/// assert!(std::ptr::eq(first, solver()?));
/// # Ok::<(), kiln::Error>(())
/// ```
pub struct CachedBackend<T> {
    cell: RetryCell<T, Error>,
}

impl<T> CachedBackend<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self { cell: RetryCell::new() }
    }

    /// The backend, if it was built.
    pub fn get(&self) -> Option<&T> {
        self.cell.get()
    }

    /// The backend, probed and built now if it was not before.
    ///
    /// # Errors
    /// What [`probe_backend_with_compile`](crate::probe_backend_with_compile) says; also if `build` asks this very cell.
    pub fn get_or_probe(&self, label: &str, build: impl FnOnce(BackendParts) -> Result<T>) -> Result<&T> {
        self.get_or_probe_with(prober::prober(), label, build)
    }

    /// The same with a prober of the caller's choice.
    ///
    /// # Errors
    /// As [`get_or_probe`](Self::get_or_probe).
    pub fn get_or_probe_with(
        &self,
        prober: &Prober,
        label: &str,
        build: impl FnOnce(BackendParts) -> Result<T>,
    ) -> Result<&T> {
        self.cell
            .get_or_try_init(|| prober.probe_backend_with_compile(label, build))
            .map_err(|error| error.labelled(label))
    }
}

impl<T> Default for CachedBackend<T> {
    fn default() -> Self {
        Self::new()
    }
}
