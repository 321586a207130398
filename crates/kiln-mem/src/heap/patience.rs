//! When mapping has cost enough.
//!
//! A heap maps free frames in a row to hold little beside what is in use. For a program that repeats itself that ends by itself; one
//! that never does would pay for ever. So what is mapped is added up, and what was mapped long ago is forgotten at a steady pace: a program
//! that spends a fiftieth of its time or less on it goes on as it is, one that spends more comes to the end of the heap's patience sooner or
//! later. From then on the heap holds more. How much is enough depends on how many rows can be kept: a program that repeats itself within
//! them has stopped mapping by then (see [`MappingLimit`](super::mapping_limit::MappingLimit)). On a device of 141 GiB that is half a minute of mapping without a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One frame is forgotten in this time: fifty times what mapping it took.
const FORGOTTEN_AFTER: Duration = Duration::from_millis(2);

/// Whether mapping has cost enough.
#[derive(Debug)]
pub(crate) struct Patience {
    /// Frames that are mapped, and not forgotten, before it is enough.
    enough_frames: u64,
    is_over: AtomicBool,
    mapped: Mutex<Mapped>,
}

/// What was mapped and is not forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Mapped {
    frames: u64,
    /// Until when forgetting is worked in.
    until: Duration,
}

impl Patience {
    /// Patience for so many frames.
    pub(crate) fn new(enough_frames: u64) -> Self {
        Self { enough_frames, is_over: AtomicBool::new(false), mapped: Mutex::default() }
    }

    /// Frames were mapped, and the clock shows this; true the one time that was enough.
    pub(crate) fn strain(&self, frames: u64, now: Duration) -> bool {
        if self.is_over() {
            return false;
        }
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.add(frames, now);
        mapped.frames >= self.enough_frames && !self.is_over.swap(true, Ordering::Relaxed)
    }

    /// Whether it was enough.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Mapped {
    fn add(&mut self, frames: u64, now: Duration) {
        let passed = now.saturating_sub(self.until);
        let forgotten = u64::try_from(passed.as_nanos() / FORGOTTEN_AFTER.as_nanos()).unwrap_or(u64::MAX);
        if forgotten >= self.frames {
            // Nothing is left to forget, and what comes later starts now.
            *self = Self { frames: 0, until: now.max(self.until) };
        } else {
            self.frames -= forgotten;
            // Fewer than the frames there were, so this is a matter of minutes.
            self.until += FORGOTTEN_AFTER * forgotten as u32;
        }
        self.frames = self.frames.saturating_add(frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH_FRAMES: u64 = 1 << 19;
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_mapped_without_a_pause_is_enough_some_time_and_once() {
        let patience = Patience::new(ENOUGH_FRAMES);
        let at_once = if cfg!(miri) { ENOUGH_FRAMES / 16 } else { 16 };
        for _ in 0..ENOUGH_FRAMES / at_once - 1 {
            assert!(!patience.strain(at_once, 7 * MS));
        }
        assert!(!patience.is_over());
        assert!(patience.strain(at_once, 7 * MS));
        assert!(patience.is_over());
        assert!(!patience.strain(u64::MAX, 8 * MS), "said once");
    }

    #[test]
    fn a_fiftieth_of_the_time_is_never_enough_and_twice_as_much_is() {
        let times = if cfg!(miri) { 1000 } else { 5_000_000 };
        let strain = |every: u32| {
            let patience = Patience::new(ENOUGH_FRAMES);
            (1..times).position(|at| patience.strain(16, MS * every * at))
        };
        assert_eq!(strain(32), None, "sixteen frames in 32 ms");
        if cfg!(miri) {
            return;
        }
        let after = strain(16).expect("sixteen frames in 16 ms");
        // Eight of sixteen are forgotten by the time the next ones come.
        assert_eq!(after as u64, (ENOUGH_FRAMES - 16) / 8);
    }

    #[test]
    fn time_that_is_no_whole_frame_is_not_lost_and_a_long_rest_is_not_saved_up() {
        let mut mapped = Mapped::default();
        mapped.add(100, 5 * MS);
        for at in 1..=6 {
            mapped.add(0, (5 + at) * MS);
        }
        assert_eq!(mapped, Mapped { frames: 97, until: 11 * MS });
        mapped.add(0, 1_000_000 * MS);
        assert_eq!(mapped, Mapped { frames: 0, until: 1_000_000 * MS });
        mapped.add(9, 1_000_000 * MS);
        assert_eq!(mapped.frames, 9);
        mapped.add(1, Duration::ZERO);
        assert_eq!(mapped.frames, 10, "a clock that goes back forgets nothing");
    }
}
