//! Synchronisation primitives for code that takes a dozen locks in a hundred nanoseconds.
//!
//! Queueing a kernel takes the lock of its stream and of every block it uses, and pins the stream and the kernel; an allocation takes the
//! lock of its thread's cache. Almost always one thread does all of that. These primitives make that case cost plain loads and stores, and
//! let the rare other thread pay.
//!
//! ```text
//!                light / heavy               the fence whose frequent side is free
//!                 │         │
//!          BiasedLock    HazardPointer       a lock with an owner; objects in use, by thread
//!                 │
//!           thread numbers ── PerThread      who the owner is; a part of a structure for each thread
//!
//!                Gate      OwnedCounter      a gate that closes once; a counter that one thread writes
//! ```
//!
//! # The contract
//!
//! - Mutual exclusion and visibility are those of a mutex, on every system. Where the system lacks `membarrier`, or begins to refuse it
//!   while the process runs, the fast paths become ordinary ones; nothing is lost and no thread waits for ever. See [`fence_mode`].
//! - Only the fast paths are unfair: a thread that collides with another spins, yields and then sleeps for moments.
//! - Nothing here calls a driver, logs or panics.
//! - `--cfg kiln_loom` and `--cfg kiln_shuttle` put a model checker's atomics below everything ([`sync_shim`]).
//!
//! # In reading order
//!
//! [`light`], [`heavy`] and [`FenceMode`]; [`BiasedLock`] with [`Bias`]; [`HazardPointer`] and [`is_protected`]; [`thread_index`],
//! [`ChunkedTable`], [`PerThread`]; [`Gate`]; [`OwnedCounter`].
//!
//! # One lock, two uses
//!
//! The blocks and streams of a device move between threads rarely and for good: their locks lose their owner at the first visit
//! ([`Bias::Once`]). The caches of threads are looked at by other threads when memory is short and stay with their thread:
//! their owner gets the lock back ([`Bias::Always`], or [`Bias::Returns`] with a limit where threads may turn out to share). Both are the
//! same lock; the bias says only whether the owner may return.
//!
//! # What it does not do
//!
//! No fairness, no poisoning, no waking: a thread that waits looks again. A lock that two threads fight for belongs into a
//! [`Mutex`](std::sync::Mutex).

mod asymmetric_fence;
mod biased_lock;
mod chunked_table;
mod gate;
mod hazard_pointer;
mod owned_counter;
mod per_thread;
pub mod sync_shim;
mod thread_number;

pub use asymmetric_fence::{FenceMode, fence_mode, heavy, light};
pub use biased_lock::{Bias, BiasedGuard, BiasedLock};
pub use chunked_table::{ChunkIndex, ChunkedTable};
pub use gate::{Gate, GatePass};
pub use hazard_pointer::{HazardPointer, is_protected};
pub use owned_counter::OwnedCounter;
pub use per_thread::PerThread;
pub use thread_number::thread_index;
