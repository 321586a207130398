//! The atomics and pauses a latch is made of, so that they can be those of a scheduler that tries interleavings.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(crate) use std::thread::{sleep, yield_now};

/// Latches taken over before new ones belong to nobody. Taking one over costs a few microseconds.
pub(crate) const TAKEOVERS: u32 = 256;

thread_local! {
    static PLACE: u8 = const { 0 };
}

/// A number other than 0 that no other living thread has. A later thread may get that of one that ended, and with it what was that
/// one's own.
#[inline(always)]
pub(crate) fn this_thread() -> usize {
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}
