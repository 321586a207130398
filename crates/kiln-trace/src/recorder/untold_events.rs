//! Events that are missing, and that the file does not say yet.

use crate::record::{DropCause, DroppedRecord};

/// How many events are missing for each reason. When the first of a reason went missing, and where in the file, stays.
#[derive(Clone, Debug, Default)]
pub(super) struct UntoldEvents {
    /// One for each reason.
    records: Vec<DroppedRecord>,
    /// Whether the time of a refusal is known: the first round of writing that was refused is over.
    is_settled: bool,
}

impl UntoldEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What the file is to say.
    pub(super) fn records(&self) -> &[DroppedRecord] {
        &self.records
    }

    /// Takes all of it.
    pub(super) fn take(&mut self) -> Vec<DroppedRecord> {
        self.is_settled = false;
        std::mem::take(&mut self.records)
    }

    /// Adds events that are missing.
    pub(super) fn add(&mut self, record: DroppedRecord) {
        let is_settled = self.is_settled;
        match self.records.iter_mut().find(|known| known.cause == record.cause) {
            Some(known) => {
                known.events = known.events.saturating_add(record.events);
                if !is_settled || record.cause == DropCause::TooFast {
                    known.time_ns = known.time_ns.max(record.time_ns);
                }
            }
            None => self.records.push(record),
        }
    }

    /// Adds events that went missing before all that are known.
    pub(super) fn add_earlier(&mut self, record: DroppedRecord) {
        let known = self.records.iter().position(|known| known.cause == record.cause);
        let later = known.map(|at| self.records.swap_remove(at).events).unwrap_or_default();
        self.records.push(DroppedRecord { events: record.events.saturating_add(later), ..record });
    }

    /// A round of writing is over: what is refused from here on came later.
    pub(super) fn settle(&mut self) {
        self.is_settled = !self.records.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_time_of_the_first_round_that_was_refused() {
        let refused =
            |events, time_ns| DroppedRecord { events, cause: DropCause::DiskFull, at_byte: 100, time_ns };
        let mut untold = UntoldEvents::default();
        // The first lane has events without a time.
        untold.add(refused(3, 0));
        untold.add(refused(4, 70));
        untold.settle();
        untold.add(refused(5, 900));
        assert_eq!(untold.take(), [refused(12, 70)]);
        assert!(untold.is_empty());
        untold.add(refused(1, 900));
        untold.add_earlier(refused(2, 70));
        assert_eq!(untold.take(), [refused(3, 70)]);
    }
}
