//! Backends from the process's own prober.

use super::backend_parts::BackendParts;
use super::options::BackendOptions;
use crate::error::Result;
use crate::prober::prober;

/// The parts for a backend; see [`Prober::probe_backend`](crate::prober::Prober::probe_backend).
///
/// # Errors
/// Absence or a fault, with the label.
pub fn probe_backend(label: &str) -> Result<BackendParts> {
    prober().probe_backend(label)
}

/// The parts for a backend under a policy and on a device of the caller's choice; see
/// [`Prober::probe_backend_on`](crate::prober::Prober::probe_backend_on).
///
/// # Errors
/// Absence or a fault, with the label; an unknown device.
pub fn probe_backend_on(label: &str, options: &BackendOptions) -> Result<BackendParts> {
    prober().probe_backend_on(label, options)
}

/// The parts for a backend and one build step on them; see
/// [`Prober::probe_backend_with_compile`](crate::prober::Prober::probe_backend_with_compile).
///
/// # Errors
/// Absence, a fault, or what the step says, with the label.
pub fn probe_backend_with_compile<T>(
    label: &str,
    build: impl FnOnce(BackendParts) -> Result<T>,
) -> Result<T> {
    prober().probe_backend_with_compile(label, build)
}
