//! Which work can be done again, by what was declared and by what had started. Knows no driver.

use std::collections::{HashMap, HashSet};

use kiln_driver::HostId;
use kiln_order::{Rules, StreamClock};

use super::byte_ranges::ByteRanges;
use super::kept_submission::Record;
use super::outcome::ReplayRefusal;
use crate::ids::BlockId;

/// What is known while unfinished work is gone through, in the order of submission.
pub(crate) struct ReplayDecision<'a> {
    /// Nothing beyond it had started.
    started: &'a StreamClock,
    /// Bytes that do not hold what they would have held here.
    spoilt: HashMap<BlockId, ByteRanges>,
    /// Pinned memory that does not hold what it would have held here.
    spoilt_hosts: HashSet<HostId>,
    /// Blocks of which nothing can be relied upon.
    broken: &'a HashSet<BlockId>,
    /// A rule that is taken out.
    rules: Rules,
}

impl<'a> ReplayDecision<'a> {
    /// Begins in front of all unfinished work.
    pub(crate) fn new(
        unfinished: &[Record],
        started: &'a StreamClock,
        broken: &'a HashSet<BlockId>,
        rules: Rules,
    ) -> Self {
        let (spoilt, spoilt_hosts) = (HashMap::new(), HashSet::new());
        let mut decision = Self { started, spoilt, spoilt_hosts, broken, rules };
        // At once and not each in its turn: what started has written whatever was in front of it.
        for record in unfinished {
            if decision.may_have_started(record) {
                decision.spoil(record);
            }
        }
        decision
    }

    /// Whether the next one is right to be done again.
    pub(crate) fn judge(&self, record: &Record) -> Result<(), ReplayRefusal> {
        if self.may_have_started(record) {
            return Err(ReplayRefusal::MayHaveStarted);
        }
        if let Some(hindrance) = record.hindrance {
            return Err(ReplayRefusal::Unsuited(hindrance));
        }
        if !self.rules.work_on_lost_blocks_is_not_replayed() {
            return Ok(());
        }
        if let Some(block) = self.missing(record) {
            return Err(ReplayRefusal::NeedsLost(block));
        }
        if record.host_reads().any(|host| self.spoilt_hosts.contains(&host)) {
            return Err(ReplayRefusal::Unsuited("it copies from pinned memory that lost work was to write"));
        }
        Ok(())
    }

    /// The next one was done: what it overwrote is what it would have been.
    pub(crate) fn done(&mut self, record: &Record) {
        if let Some(declared) = record.overwrites()
            && let Some(spans) = declared.block.and_then(|block| self.spoilt.get_mut(&block))
        {
            spans.remove(&declared.range);
        }
        // Pinned memory is copied to as a whole.
        for host in &record.host_writes {
            self.spoilt_hosts.remove(host);
        }
    }

    /// The next one failed: nothing can be said of what it was to write.
    pub(crate) fn failed(&mut self, record: &Record) {
        self.spoil(record);
    }

    fn may_have_started(&self, record: &Record) -> bool {
        self.started.covers(record.stamp) && self.rules.started_work_is_not_replayed()
    }

    /// A block of which it needs more than there is.
    fn missing(&self, record: &Record) -> Option<BlockId> {
        let overwritten = record.overwrites().map(std::ptr::from_ref);
        let needed =
            record.accesses.iter().filter(|declared| Some(std::ptr::from_ref(*declared)) != overwritten);
        needed
            .filter_map(|declared| Some((declared.block?, &declared.range)))
            .find(|(block, range)| {
                self.broken.contains(block)
                    || self.spoilt.get(block).is_some_and(|spans| spans.intersects(range))
            })
            .map(|(block, _)| block)
    }

    fn spoil(&mut self, record: &Record) {
        for declared in record.accesses.iter().filter(|declared| declared.access.writes()) {
            if let Some(block) = declared.block {
                self.spoilt.entry(block).or_default().insert(&declared.range);
            }
        }
        self.spoilt_hosts.extend(&record.host_writes);
    }
}

#[cfg(test)]
mod tests {
    use kiln_driver::Access;

    use super::super::kept_submission::Declared;
    use super::*;
    use kiln_order::{Stamp, StreamKey};

    fn stamp(stream: usize, number: u64) -> Stamp {
        Stamp { stream: StreamKey::new(stream).unwrap(), number }
    }

    /// A kernel that uses the first eight bytes of blocks.
    fn kernel(stamp: Stamp, reads: &[u64], writes: &[u64]) -> Record {
        let declared =
            |access| move |block: &u64| Declared { block: Some(BlockId::of(*block)), range: 0..8, access };
        let reads = reads.iter().map(declared(Access::Read));
        let accesses = reads.chain(writes.iter().map(declared(Access::Write))).collect();
        Record::new(stamp, 0, accesses, None)
    }

    /// Goes through them in order, and says which are done again.
    fn replayed(records: &[Record], started: &StreamClock, broken: &[u64]) -> Vec<bool> {
        let broken = broken.iter().map(|block| BlockId::of(*block)).collect();
        let mut decision = ReplayDecision::new(records, started, &broken, Rules::default());
        let decide = |record: &Record| {
            let done = decision.judge(record).is_ok();
            if done {
                decision.done(record)
            } else {
                decision.failed(record)
            }
            done
        };
        records.iter().map(decide).collect()
    }

    #[test]
    fn what_was_lost_is_missed_by_everything_that_comes_of_it() {
        // The first of stream 0 may have started: it writes block 1.
        let records = [
            kernel(stamp(0, 5), &[], &[1]),
            kernel(stamp(0, 6), &[2], &[3]),
            kernel(stamp(1, 1), &[1], &[4]),
            kernel(stamp(1, 2), &[4], &[5]),
            kernel(stamp(1, 3), &[3], &[6]),
            kernel(stamp(0, 7), &[], &[5]),
        ];
        let mut started = StreamClock::default();
        started.learn(stamp(0, 5));
        // The last may leave bytes of block 5 as they are, which are lost.
        assert_eq!(replayed(&records, &started, &[]), [false, true, false, false, true, false]);
        assert_eq!(replayed(&records, &started, &[2]), [false; 6]);
        assert_eq!(replayed(&records, &StreamClock::default(), &[]), [true; 6]);
    }
}
