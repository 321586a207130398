//! The locks and atomics of the order.
//!
//! Every file of the order takes them from here, so that `kiln-shuttle` can compile the same files over a scheduler that decides each step
//! and tries the interleavings no machine would show in years.

pub(crate) use kiln_driver::{Latch, LatchGuard};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, RwLock};
pub(crate) use std::thread::yield_now;
pub(crate) use std::thread_local;
