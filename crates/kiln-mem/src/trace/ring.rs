//! A ring buffer of the last trace records of a thread.

use super::record::TraceRecord;

/// A buffer that forgets the oldest record when it is full, and counts what it forgot.
#[derive(Debug)]
pub(crate) struct Ring {
    records: Box<[Option<TraceRecord>]>,
    written: u64,
}

impl Ring {
    /// A ring for so many records, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { records: vec![None; capacity.max(1)].into(), written: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, record: TraceRecord) {
        let at = (self.written % self.records.len() as u64) as usize;
        self.records[at] = Some(record);
        self.written += 1;
    }

    /// Records that were forgotten.
    pub(crate) fn dropped(&self) -> u64 {
        self.written.saturating_sub(self.records.len() as u64)
    }

    /// The records that are left, oldest first.
    pub(crate) fn records(&self) -> impl Iterator<Item = TraceRecord> + '_ {
        let at = (self.written % self.records.len() as u64) as usize;
        let (newer, older) = self.records.split_at(at);
        older.iter().chain(newer).flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use kiln_driver::DeviceAddress;

    use super::*;
    use crate::last_use::StreamKey;
    use crate::tag::AllocTag;
    use crate::trace::record::TraceAction;

    #[test]
    fn the_newest_stay_in_order_and_the_rest_is_counted() {
        let mut ring = Ring::new(3);
        for nanoseconds in 0..5 {
            ring.push(TraceRecord {
                nanoseconds,
                address: DeviceAddress(0),
                bytes: 0,
                stream: StreamKey::default(),
                thread: 0,
                tag: AllocTag::default(),
                action: TraceAction::Free,
            });
        }
        assert_eq!(ring.records().map(|record| record.nanoseconds).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(ring.dropped(), 2);
    }
}
