//! How a process knows that it was started as a worker, and a client that its program can be one.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set in the environment of a worker, and of no other process.
pub(crate) const WORKER_VARIABLE: &str = "KILN_WORKER";
/// The process id of the client, in the environment of its worker.
pub(crate) const PARENT_VARIABLE: &str = "KILN_WORKER_PARENT";

/// Whether `main` of this process called [`worker_entry`](crate::worker_entry) without being a worker.
static ENTRY_CALLED: AtomicBool = AtomicBool::new(false);

/// Whether this process was started as a worker.
pub(crate) fn is_worker() -> bool {
    std::env::var_os(WORKER_VARIABLE).is_some()
}

/// Records that `main` called the entry.
pub(crate) fn record_entry() {
    ENTRY_CALLED.store(true, Ordering::Release);
}

/// Whether `main` called the entry, so that this program can be started as its own worker.
pub(crate) fn has_entry() -> bool {
    ENTRY_CALLED.load(Ordering::Acquire)
}
