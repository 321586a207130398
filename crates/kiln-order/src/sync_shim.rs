//! The locks and atomics of this crate; in the builds of a model checker they are the checker's.

pub(crate) use kiln_sync::sync_shim::{
    AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, RwLock, spin_loop, thread_local, yield_now,
};
pub(crate) use kiln_sync::{BiasedGuard, BiasedLock};
