//! Collectives of a recording.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::explanation::ExplainedCollective;
use super::name_table::{NameId, NameTable};
use super::timeline::Timeline;
use crate::record::{CollectiveRecord, TraceStamp};

/// What tells collectives apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    name: NameId,
    communicator: u64,
    rank: u32,
    ranks: u32,
}

/// All collectives.
#[derive(Default)]
pub(super) struct CollectiveCalls {
    calls: Vec<(Key, TraceStamp, u64)>,
}

impl CollectiveCalls {
    pub(super) fn add(&mut self, call: &CollectiveRecord<'_>, names: &mut NameTable) {
        let CollectiveRecord { communicator, rank, ranks, .. } = *call;
        let key = Key { name: names.name(call.name), communicator, rank, ranks };
        self.calls.push((key, call.stamp, call.bytes));
    }

    /// Those that took longest, or moved most where no time is known.
    pub(super) fn largest(
        &self,
        count: usize,
        names: &NameTable,
        timeline: &Timeline,
    ) -> Vec<ExplainedCollective> {
        let mut kinds: BTreeMap<Key, ExplainedCollective> = BTreeMap::new();
        for (key, stamp, bytes) in &self.calls {
            let kind = kinds.entry(*key).or_insert_with(|| ExplainedCollective {
                name: names.text(key.name),
                communicator: format!("{:08x}", key.communicator),
                rank: key.rank,
                ranks: key.ranks,
                ..ExplainedCollective::default()
            });
            kind.calls += 1;
            kind.bytes = kind.bytes.saturating_add(*bytes);
            let work = timeline.up_to(*stamp).filter(|work| work.stamp == *stamp);
            if let Some(ran) = work.and_then(|work| work.device) {
                kind.ns = Some(kind.ns.unwrap_or(0).saturating_add(ran.ns()));
                kind.longest_ns = kind.longest_ns.max(Some(ran.ns()));
            }
        }
        let mut kinds: Vec<ExplainedCollective> = kinds.into_values().collect();
        kinds.sort_by_key(|kind| Reverse((kind.ns, kind.bytes)));
        kinds.truncate(count);
        kinds
    }
}
