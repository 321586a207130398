//! The order of kiln over locks and atomics whose every step a scheduler decides.
//!
//! A race that needs one thread to stop between two particular instructions does not show on a machine in years. Here the threads are
//! run one at a time by [shuttle](https://docs.rs/shuttle), which switches between them at every lock and atomic, in orders that a seed
//! picks, and reports deadlocks.
//!
//! - The files are kiln's own, taken in by path. Only [`sync`] is another: kiln has the standard library's atomics in its place.
//! - The device is the simulated one, whose own happens-before says whether an edge is missing.
//!
//! ```text
//!   kiln/src/order/*.rs ──┬── sync = std       kiln
//!                         └── sync = shuttle   here, driven by tests/
//! ```
//!
//! What it does not do: memory orders. Every atomic is sequentially consistent here, so a missing acquire is not found.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "the files are written for another crate, which uses and exports all of it"
)]

mod sync {
    //! Locks and atomics that switch threads.

    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::time::Duration;

    pub(super) use shuttle::hint::spin_loop;
    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(super) use shuttle::sync::{Mutex, RwLock};
    pub(super) use shuttle::thread::yield_now;
    pub(super) use shuttle::thread_local;

    pub(super) use super::latch::{Latch, LatchGuard};

    /// A latch always belongs to a thread at first, so that taking over is what is tried.
    pub(super) const TAKEOVERS: u32 = u32::MAX;

    /// Time does not pass here.
    pub(super) fn sleep(_: Duration) {
        yield_now();
    }

    /// A number other than 0 for each thread.
    pub(super) fn this_thread() -> usize {
        let mut hasher = DefaultHasher::new();
        shuttle::thread::current().id().hash(&mut hasher);
        hasher.finish() as usize | 1
    }
}

mod asymmetric {
    //! Every atomic is sequentially consistent here, so there is nothing to fence.

    pub(super) fn is_offered() -> bool {
        true
    }
    pub(super) fn light() {}
    pub(super) fn heavy() {}
}

#[path = "../../kiln-order/src/clock.rs"]
mod clock;
#[path = "../../kiln-order/src/eventless.rs"]
mod eventless;
#[path = "../../kiln-order/src/events.rs"]
mod events;
#[path = "../../kiln-order/src/freeze.rs"]
mod freeze;
#[path = "../../kiln-order/src/gate.rs"]
mod gate;
#[path = "../../kiln-order/src/guards.rs"]
mod guards;
#[path = "../../kiln-order/src/held.rs"]
mod held;
#[path = "../../kiln-order/src/lane.rs"]
mod lane;
#[path = "../../kiln-driver/src/latch.rs"]
mod latch;
#[path = "../../kiln-order/src/launch_sites.rs"]
mod launch_sites;
#[path = "../../kiln-order/src/mutation.rs"]
mod mutation;
#[path = "../../kiln-order/src/places.rs"]
mod places;
#[path = "../../kiln-order/src/plan.rs"]
mod plan;
#[path = "../../kiln-order/src/stamp.rs"]
mod stamp;
#[path = "../../kiln-order/src/step.rs"]
mod step;
#[path = "../../kiln-order/src/stream_counters.rs"]
mod stream_counters;
#[path = "../../kiln-order/src/submit_error.rs"]
mod submit_error;
#[path = "../../kiln-order/src/track.rs"]
mod track;
#[path = "../../kiln-order/src/tracker.rs"]
mod tracker;

pub use lane::Lane;
pub use latch::Latch;
pub use mutation::Mutation;
pub use stamp::{MAX_STREAMS, Stamp};
pub use step::Use;
pub use track::Track;
pub use tracker::{Recording, Tracker};
