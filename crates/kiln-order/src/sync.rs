//! The locks and atomics of the order, taken from the seam where a model checker puts its own.

pub(crate) use kiln_sync::sync_shim::{
    AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, RwLock, spin_loop, thread_local, yield_now,
};
pub(crate) use kiln_sync::{BiasedGuard, BiasedLock};
