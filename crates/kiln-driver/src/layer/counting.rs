//! Counts calls, so that a test can say how many a piece of work may cost.

use std::sync::atomic::{AtomicU64, Ordering};

use super::layered::Layer;
use crate::call::{Answer, Call, CallKind};
use crate::error::Error;

/// A layer that counts every call that reached the driver, failed ones included.
///
/// ```ignore
/// let driver = Layered::new(driver, Counting::default());
/// let before = driver.layer().counts();
/// work(&driver);
/// assert_eq!(driver.layer().counts().since(&before).total(), 1);
/// ```
#[derive(Debug)]
pub struct Counting {
    calls: [AtomicU64; CallKind::ALL.len()],
    failed: AtomicU64,
}

/// How many calls there were of each kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    calls: [u64; CallKind::ALL.len()],
    failed: u64,
}

impl Default for Counting {
    fn default() -> Self {
        Self { calls: [const { AtomicU64::new(0) }; CallKind::ALL.len()], failed: AtomicU64::new(0) }
    }
}

impl Counting {
    /// The counts so far.
    pub fn counts(&self) -> Counts {
        Counts {
            calls: std::array::from_fn(|at| self.calls[at].load(Ordering::Relaxed)),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl Counts {
    /// Calls of one kind.
    pub fn of(&self, kind: CallKind) -> u64 {
        self.calls[kind as usize]
    }

    /// Calls of all kinds.
    pub fn total(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// Calls that returned an error.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// What came after an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: std::array::from_fn(|at| self.calls[at].saturating_sub(earlier.calls[at])),
            failed: self.failed.saturating_sub(earlier.failed),
        }
    }

    /// The kinds that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (CallKind, u64)> + '_ {
        CallKind::ALL.iter().map(|kind| (*kind, self.of(*kind))).filter(|(_, count)| *count > 0)
    }
}

impl Layer for Counting {
    fn after(&self, call: &Call<'_>, answer: Result<Answer<'_>, &Error>) {
        self.calls[call.kind() as usize].fetch_add(1, Ordering::Relaxed);
        if answer.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
