//! Which copies of pageable memory a record of an event covers: when the event is waited for, their blocks can be used again.
//!
//! One thread may record the event anew while another waits for it. So nothing is noted between the moment before a record is queued and the one after it, and a wait
//! takes what was noted before it began and is noted still when it ended: then it was for that record, or for one behind the same copies.

use kiln_driver::StreamId;
use kiln_sync::{Bias, BiasedLock};

use crate::calls::staging_pool::Finished;

/// How often other threads may look before the note belongs to all alike.
const VISITS: u32 = 16;

/// Copies of streams that were queued before the one with a number.
pub(crate) type Covered = (Finished<StreamId>, u64);

/// What the newest record of an event covers.
pub(crate) struct CoveredCopies(BiasedLock<Option<Covered>>);

impl Default for CoveredCopies {
    fn default() -> Self {
        Self(BiasedLock::with_bias(None, Bias::Returns(VISITS)))
    }
}

impl CoveredCopies {
    /// What is noted now.
    pub(crate) fn get(&self) -> Option<Covered> {
        *self.0.lock()
    }

    /// Runs what queues a record, which covers these copies if it succeeds.
    pub(crate) fn record<E>(
        &self,
        covered: Option<Covered>,
        queue: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        *self.0.lock() = None;
        queue()?;
        if covered.is_some() {
            *self.0.lock() = covered;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_covered_while_a_record_is_queued_or_after_one_that_failed() {
        let (first, second) = ((Finished::All, 1), (Finished::Blocking, 2));
        let noted = CoveredCopies::default();
        assert_eq!(noted.get(), None);
        let queue = |is_queued: bool| if is_queued { Ok(()) } else { Err(()) };
        noted.record(Some(first), || queue(true)).unwrap();
        assert_eq!(noted.get(), Some(first));
        let while_queued = noted.record(Some(second), || {
            assert_eq!(noted.get(), None);
            queue(true)
        });
        assert_eq!((while_queued, noted.get()), (Ok(()), Some(second)));
        assert_eq!((noted.record(Some(first), || queue(false)), noted.get()), (Err(()), None));
        noted.record(Some(first), || queue(true)).unwrap();
        noted.record(None, || queue(true)).unwrap();
        assert_eq!(noted.get(), None);
    }
}
