//! Which line launched what, for the last launches of a stream.
//!
//! A fault names the driver's number of a submission. A launch writes that number and its caller into a ring, three plain stores; when a
//! device is lost, and only then, somebody looks. The ring is as long as the queue of a stream in hardware, so a launch that is still
//! unfinished is nearly always in it; one that is not is simply not known.

use std::panic::Location;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use kiln_driver::Submission;

/// Launches that are remembered; a power of two.
const REMEMBERED: usize = 1024;

/// The last launches of one stream.
#[derive(Debug, Default)]
pub struct LaunchSites {
    ring: OnceLock<Box<[Site]>>,
}

#[derive(Debug)]
struct Site {
    submission: AtomicU64,
    number: AtomicU64,
    at: AtomicPtr<Location<'static>>,
}

impl LaunchSites {
    /// Remembers a launch: the stream's own number for it, the driver's, and the line.
    #[inline]
    pub fn note(&self, number: u64, submission: Submission, at: &'static Location<'static>) {
        let ring = self.ring.get_or_init(|| (0..REMEMBERED).map(|_| Site::default()).collect());
        if let Some(site) = ring.get(number as usize % REMEMBERED) {
            site.submission.store(submission.0, Ordering::Relaxed);
            site.number.store(number, Ordering::Relaxed);
            site.at.store(ptr::from_ref(at).cast_mut(), Ordering::Release);
        }
    }

    /// The number and the line of a launch, if it is among the last.
    pub fn find(&self, submission: Submission) -> Option<(u64, &'static Location<'static>)> {
        let site =
            self.ring.get()?.iter().find(|site| site.submission.load(Ordering::Relaxed) == submission.0)?;
        let at = site.at.load(Ordering::Acquire);
        // SAFETY: the pointer is null or was made in `note` from a reference that lives for ever, and nobody writes through it.
        Some((site.number.load(Ordering::Relaxed), unsafe { at.as_ref() }?))
    }
}

impl Default for Site {
    fn default() -> Self {
        // No submission has this number.
        Self {
            submission: AtomicU64::new(u64::MAX),
            number: AtomicU64::new(0),
            at: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_launches_are_found_and_old_ones_are_not() {
        let sites = LaunchSites::default();
        assert!(sites.find(Submission(1)).is_none());
        let here = Location::caller();
        let last = 3 * REMEMBERED as u64 + 5;
        for number in 1..=last {
            sites.note(number, Submission(10 * number), here);
        }
        for number in [last, last - 1, last - REMEMBERED as u64 + 1] {
            assert_eq!(sites.find(Submission(10 * number)).map(|found| found.0), Some(number));
        }
        assert!(sites.find(Submission(10)).is_none(), "overwritten long ago");
        assert!(sites.find(Submission(10 * last + 1)).is_none(), "never launched");
    }
}
