//! Waking tasks and threads. Knows no device.

pub(crate) mod reply_slot;
mod wake_signal;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

pub(crate) use reply_slot::ReplySlot;
pub(crate) use wake_signal::WakeSignal;

/// Wakes a task. The threads that do this serve all tasks, so a waker that panics costs only its task.
pub fn wake(waker: Waker) {
    if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
        tracing::error!("the waker of a task panicked");
    }
}
