//! A backend that is created once and kept in a `static`.

use std::sync::OnceLock;

use kiln_probe::RetryCell;

use super::backend_parts::BackendParts;
use super::options::BackendOptions;
use crate::error::{Error, Result};
use crate::prober::{self, Prober, is_over};
use crate::runtime::DeviceRuntime;

/// A cell for a backend that is probed and built by the first caller that needs it.
///
/// The backend is kept while its runtime takes work, or may again. Callers that come while it is being built wait for that
/// attempt and share its answer. A failure is not kept: the next caller tries again. A build step that panics ends its own
/// thread's attempt only. Once the runtime has failed or was shut down, the next caller probes and builds another backend;
/// references to the last one stay valid for as long as the cell.
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
    first: Node<T>,
}

/// A backend, and the one that was built after it was over.
struct Node<T> {
    cell: RetryCell<Built<T>, Error>,
    next: OnceLock<Box<Self>>,
}

/// A backend and the runtime it was built on.
struct Built<T> {
    backend: T,
    runtime: &'static DeviceRuntime,
}

impl<T> CachedBackend<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self { first: Node::new() }
    }

    /// The backend that was built last, if one was.
    pub fn get(&self) -> Option<&T> {
        let mut last = self.first.cell.get();
        let mut node = &self.first;
        while let Some(next) = node.next.get() {
            last = next.cell.get().or(last);
            node = next;
        }
        last.map(|built| &built.backend)
    }

    /// The backend, probed and built now if there is none or its runtime is over.
    ///
    /// # Errors
    /// What [`probe_backend_with_compile`](crate::probe_backend_with_compile) answers; also if `build` asks this very cell.
    pub fn get_or_probe(&self, label: &str, build: impl FnOnce(BackendParts) -> Result<T>) -> Result<&T> {
        self.get_or_probe_with(prober::prober(), label, build)
    }

    /// As [`get_or_probe`](Self::get_or_probe), under a policy and on a device of the caller's choice.
    ///
    /// # Errors
    /// As [`get_or_probe`](Self::get_or_probe), and if the chosen device does not exist.
    pub fn get_or_probe_on(
        &self,
        label: &str,
        options: &BackendOptions,
        build: impl FnOnce(BackendParts) -> Result<T>,
    ) -> Result<&T> {
        self.fill(prober::prober(), label, options, build)
    }

    /// As [`get_or_probe`](Self::get_or_probe), with a prober of the caller's choice.
    ///
    /// # Errors
    /// As [`get_or_probe`](Self::get_or_probe).
    pub fn get_or_probe_with(
        &self,
        prober: &Prober,
        label: &str,
        build: impl FnOnce(BackendParts) -> Result<T>,
    ) -> Result<&T> {
        self.fill(prober, label, &BackendOptions::default(), build)
    }

    fn fill(
        &self,
        prober: &Prober,
        label: &str,
        options: &BackendOptions,
        build: impl FnOnce(BackendParts) -> Result<T>,
    ) -> Result<&T> {
        let make = || {
            let parts = prober.probe_backend_on(label, options)?;
            let runtime = parts.runtime();
            Ok(Built { backend: build(parts)?, runtime })
        };
        let built = self.usable().cell.get_or_try_init(make).map_err(|error| error.labelled(label))?;
        Ok(&built.backend)
    }

    /// The first place that is empty or holds a backend whose runtime is not over.
    fn usable(&self) -> &Node<T> {
        let mut node = &self.first;
        while node.cell.get().is_some_and(|built| is_over(built.runtime)) {
            node = node.next.get_or_init(|| Box::new(Node::new()));
        }
        node
    }
}

impl<T> Node<T> {
    const fn new() -> Self {
        Self { cell: RetryCell::new(), next: OnceLock::new() }
    }
}

impl<T> Default for CachedBackend<T> {
    fn default() -> Self {
        Self::new()
    }
}
