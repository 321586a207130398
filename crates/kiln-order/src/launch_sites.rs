//! Which line launched what, for the last launches of a stream.
//!
//! A fault names the driver's number of a submission. A launch writes its caller into a ring before it is queued, and the driver's number
//! after, all plain stores; when a device is lost, and only then, it is read. The ring is as long as the queue of a stream in
//! hardware, so a launch that is still unfinished is nearly always in it; one that is not is simply not known.

use std::panic::Location;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use kiln_driver::{Error, Submission};

/// Launches that are remembered; a power of two.
const REMEMBERED: usize = 1024;
/// In place of the driver's number: nothing was queued.
const NEVER: u64 = u64::MAX;
/// In place of the driver's number: being queued right now.
const UNDER_WAY: u64 = u64::MAX - 1;

/// The last launches of one stream.
#[derive(Debug, Default)]
pub struct LaunchSites {
    ring: OnceLock<Box<[Site; REMEMBERED]>>,
}

#[derive(Debug)]
struct Site {
    submission: AtomicU64,
    number: AtomicU64,
    at: AtomicPtr<Location<'static>>,
}

impl LaunchSites {
    /// Queues a launch and remembers it: by the stream's own number for it, by the driver's, and by the line. The stream is entered, so
    /// that one launch at a time is under way.
    ///
    /// # Errors
    /// What `queue` says.
    #[inline]
    pub fn note(
        &self,
        number: u64,
        at: &'static Location<'static>,
        queue: impl FnOnce() -> Result<Submission, Error>,
    ) -> Result<(), Error> {
        let ring = match self.ring.get() {
            Some(ring) => ring,
            None => self.begin(),
        };
        let Some(site) = ring.get(number as usize % REMEMBERED) else { return queue().map(|_| ()) };
        site.submission.store(NEVER, Ordering::Relaxed);
        site.number.store(number, Ordering::Relaxed);
        site.at.store(ptr::from_ref(at).cast_mut(), Ordering::Relaxed);
        site.submission.store(UNDER_WAY, Ordering::Release);
        let queued = queue();
        site.submission.store(queued.as_ref().map_or(NEVER, |queued| queued.0), Ordering::Release);
        queued.map(|_| ())
    }

    /// Room for a stream's first launch.
    #[cold]
    #[inline(never)]
    fn begin(&self) -> &[Site; REMEMBERED] {
        self.ring.get_or_init(|| Box::new(std::array::from_fn(|_| Site::default())))
    }

    /// The number and the line of a launch, if it is among the last. One that ran before its queueing came to an end is the one that is
    /// under way.
    pub fn find(&self, launch: Submission) -> Option<(u64, &'static Location<'static>)> {
        let ring = self.ring.get()?;
        let known = |wanted: u64| ring.iter().find(|site| site.submission.load(Ordering::Acquire) == wanted);
        let site = known(launch.0).or_else(|| known(UNDER_WAY))?;
        let at = site.at.load(Ordering::Relaxed);
        // SAFETY: the pointer is null or was made in `note` from a reference that lives for ever, and nothing is written through it.
        Some((site.number.load(Ordering::Relaxed), unsafe { at.as_ref() }?))
    }
}

impl Default for Site {
    fn default() -> Self {
        Self {
            submission: AtomicU64::new(NEVER),
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
        let times = if cfg!(miri) { 1 } else { 3 };
        let last = times * REMEMBERED as u64 + 5;
        for number in 1..=last {
            sites.note(number, here, || Ok(Submission(10 * number))).unwrap();
        }
        for number in [last, last - 1, last - REMEMBERED as u64 + 1] {
            assert_eq!(sites.find(Submission(10 * number)).map(|found| found.0), Some(number));
        }
        assert!(sites.find(Submission(10)).is_none(), "overwritten long ago");
        assert!(sites.find(Submission(10 * last + 1)).is_none(), "never launched");
        let refused = sites.note(last + 1, here, || {
            let found = sites.find(Submission(10 * last + 10)).map(|found| found.0);
            assert_eq!(found, Some(last + 1), "it may run before its number is known");
            Err(Error::invalid("submit", "as planned", "nothing"))
        });
        assert!(refused.is_err());
        assert!(sites.find(Submission(10 * last + 10)).is_none(), "it was not queued");
    }
}
