//! Collectives, added up by operation and rank.

use std::collections::{BTreeMap, HashMap};

use kiln_trace::{CollectiveRecord, TimeSpan, TraceStamp};
use serde::Serialize;

use crate::name_table::NameId;

/// Operations and ranks that are told apart.
const MAX_TOTALS: usize = 1024;
/// Records and submissions that wait for each other.
const MAX_OPEN: usize = 1 << 14;

/// What tells collectives apart: name, communicator, rank and ranks.
type CollectiveKey = (NameId, u64, u32, u32);

/// All collectives.
#[derive(Default)]
pub(crate) struct Collectives {
    totals: BTreeMap<CollectiveKey, CollectiveTotals>,
    /// Records whose submission has not come yet.
    records: HashMap<TraceStamp, CollectiveKey>,
    /// Submissions whose record has not come yet.
    spans: HashMap<TraceStamp, TimeSpan>,
}

/// What all collectives of one operation took on one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CollectiveTotals {
    /// The name of the operation, by its number.
    pub name: NameId,
    /// The communicator, the same number on all its ranks.
    #[serde(serialize_with = "as_hexadecimal")]
    pub communicator: u64,
    /// The rank.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// How often.
    pub count: u64,
    /// Bytes altogether.
    pub bytes: u64,
    /// How long altogether.
    pub ns: u64,
    /// How long at the most.
    pub longest_ns: u64,
}

impl Collectives {
    pub(crate) fn record(&mut self, record: &CollectiveRecord<'_>, name: NameId) {
        let key = (name, record.communicator, record.rank, record.ranks);
        if self.totals.len() >= MAX_TOTALS && !self.totals.contains_key(&key) {
            return;
        }
        let totals = self.totals.entry(key).or_default();
        (totals.name, totals.communicator, totals.rank, totals.ranks) = key;
        totals.count += 1;
        totals.bytes = totals.bytes.saturating_add(record.bytes);
        match self.spans.remove(&record.stamp) {
            Some(span) => totals.took(span),
            None if self.records.len() < MAX_OPEN => drop(self.records.insert(record.stamp, key)),
            None => {}
        }
    }

    pub(crate) fn submission(&mut self, stamp: TraceStamp, span: TimeSpan) {
        match self.records.remove(&stamp) {
            Some(key) => {
                if let Some(totals) = self.totals.get_mut(&key) {
                    totals.took(span);
                }
            }
            None if self.spans.len() < MAX_OPEN => drop(self.spans.insert(stamp, span)),
            None => {}
        }
    }

    pub(crate) fn totals(&self) -> Vec<CollectiveTotals> {
        self.totals.values().copied().collect()
    }
}

impl CollectiveTotals {
    fn took(&mut self, span: TimeSpan) {
        self.ns = self.ns.saturating_add(span.ns());
        self.longest_ns = self.longest_ns.max(span.ns());
    }
}

/// A browser's numbers have 53 bits.
fn as_hexadecimal<S: serde::Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{number:08x}"))
}
