//! How many frames a heap maps before it holds more spare memory instead.
//!
//! A program that repeats itself stops mapping after its second run. One that never repeats itself would map forever: 6 to 71 us an operation
//! on an H200, where 50 % of spare memory cost 55 to 72 ns. So mapped frames are counted against a budget, and one frame is refunded every
//! [`REFUND_PERIOD`]: a program that spends a fiftieth of its time on mapping, or less, never exhausts it. Once the budget is spent the heap uses
//! the larger share of [`Spare`](super::spare::Spare). The budget is twice what may be kept mapped (see
//! [`MappingLimit`](super::mapping_limit::MappingLimit)), because a program that repeats itself within that maps at most so much in each of its first two
//! runs. By default that is 87,000 frames, some 3 seconds of mapping without a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One frame is refunded in this time: fifty times what mapping a frame takes.
const REFUND_PERIOD: Duration = Duration::from_millis(2);

/// A budget of mapped frames.
#[derive(Debug)]
pub(crate) struct RemapBudget {
    /// Frames that are mapped and not refunded when the budget is spent.
    limit_frames: u64,
    is_spent: AtomicBool,
    mapped: Mutex<MappedFrames>,
}

/// Frames that were mapped and not refunded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct MappedFrames {
    frames: u64,
    /// Up to when refunds are counted.
    until: Duration,
}

impl RemapBudget {
    /// A budget of `limit_frames`.
    pub(crate) fn new(limit_frames: u64) -> Self {
        Self { limit_frames, is_spent: AtomicBool::new(false), mapped: Mutex::default() }
    }

    /// Counts mapped frames at the time `now`; true for the one call that spends the budget.
    pub(crate) fn record(&self, frames: u64, now: Duration) -> bool {
        if self.is_spent() {
            return false;
        }
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.add(frames, now);
        mapped.frames >= self.limit_frames && !self.is_spent.swap(true, Ordering::Relaxed)
    }

    /// Whether the budget is spent.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }
}

impl MappedFrames {
    fn add(&mut self, frames: u64, now: Duration) {
        let passed = now.saturating_sub(self.until);
        let refunded = u64::try_from(passed.as_nanos() / REFUND_PERIOD.as_nanos()).unwrap_or(u64::MAX);
        if refunded >= self.frames {
            // Nothing is left to refund, and time does not accumulate.
            *self = Self { frames: 0, until: now.max(self.until) };
        } else {
            self.frames -= refunded;
            // Fewer than the frames there were, so this fits.
            self.until += REFUND_PERIOD * refunded as u32;
        }
        self.frames = self.frames.saturating_add(frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT_FRAMES: u64 = 1 << 19;
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn frames_mapped_without_a_pause_spend_the_budget_once() {
        let remap_budget = RemapBudget::new(LIMIT_FRAMES);
        let at_once = if cfg!(miri) { LIMIT_FRAMES / 16 } else { 16 };
        for _ in 0..LIMIT_FRAMES / at_once - 1 {
            assert!(!remap_budget.record(at_once, 7 * MS));
        }
        assert!(!remap_budget.is_spent());
        assert!(remap_budget.record(at_once, 7 * MS));
        assert!(remap_budget.is_spent());
        assert!(!remap_budget.record(u64::MAX, 8 * MS), "said once");
    }

    #[test]
    fn a_fiftieth_of_the_time_never_spends_the_budget_and_twice_as_much_does() {
        let times = if cfg!(miri) { 1000 } else { 5_000_000 };
        let record = |every: u32| {
            let remap_budget = RemapBudget::new(LIMIT_FRAMES);
            (1..times).position(|at| remap_budget.record(16, MS * every * at))
        };
        assert_eq!(record(32), None, "sixteen frames in 32 ms");
        if cfg!(miri) {
            return;
        }
        let after = record(16).expect("sixteen frames in 16 ms");
        // Eight of sixteen are refunded by the time the next ones come.
        assert_eq!(after as u64, (LIMIT_FRAMES - 16) / 8);
    }

    #[test]
    fn time_that_refunds_no_whole_frame_is_not_lost_and_a_long_pause_does_not_accumulate() {
        let mut mapped = MappedFrames::default();
        mapped.add(100, 5 * MS);
        for at in 1..=6 {
            mapped.add(0, (5 + at) * MS);
        }
        assert_eq!(mapped, MappedFrames { frames: 97, until: 11 * MS });
        mapped.add(0, 1_000_000 * MS);
        assert_eq!(mapped, MappedFrames { frames: 0, until: 1_000_000 * MS });
        mapped.add(9, 1_000_000 * MS);
        assert_eq!(mapped.frames, 9);
        mapped.add(1, Duration::ZERO);
        assert_eq!(mapped.frames, 10, "a clock that goes back refunds nothing");
    }
}
