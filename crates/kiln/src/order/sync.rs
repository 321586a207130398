//! The locks and atomics of the order.
//!
//! Every file of the order takes them from here, so that `kiln-shuttle` can compile the same files over a scheduler that decides each step
//! and tries the interleavings no machine would show in years.

pub(super) use kiln_driver::{Latch, LatchGuard};
pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(super) use std::sync::{Mutex, RwLock};
pub(super) use std::thread::yield_now;
pub(super) use std::thread_local;
