//! Collectives of a recording.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::explanation::{ExplainedCollective, LeftOut};
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
    /// Calls whose work was not looked at.
    calls: Vec<(Key, TraceStamp)>,
    kinds: BTreeMap<Key, Sum>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    bytes: u64,
    ns: Option<u64>,
    longest_ns: Option<u64>,
}

impl CollectiveCalls {
    pub(super) fn add(&mut self, call: &CollectiveRecord<'_>, names: &mut NameTable) {
        let CollectiveRecord { communicator, rank, ranks, .. } = *call;
        let key = Key { name: names.name(call.name), communicator, rank, ranks };
        let kind = self.kinds.entry(key).or_default();
        kind.calls += 1;
        kind.bytes = kind.bytes.saturating_add(call.bytes);
        self.calls.push((key, call.stamp));
    }

    /// How many wait for their work.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Adds the times of calls whose work is known. Of very many others, the oldest have none.
    pub(super) fn settle(&mut self, timeline: &Timeline, most: usize) {
        let kinds = &mut self.kinds;
        self.calls.retain(|(key, stamp)| {
            let Some(work) = timeline.exactly(*stamp) else { return true };
            if let (Some(ran), Some(kind)) = (work.device, kinds.get_mut(key)) {
                kind.ns = Some(kind.ns.unwrap_or(0).saturating_add(ran.ns()));
                kind.longest_ns = kind.longest_ns.max(Some(ran.ns()));
            }
            false
        });
        self.calls.drain(..self.calls.len().saturating_sub(most));
    }

    /// Those that took longest, or moved most where no time is known, and what the others took.
    pub(super) fn largest(&self, count: usize, names: &NameTable) -> (Vec<ExplainedCollective>, LeftOut) {
        let mut kinds: Vec<(&Key, &Sum)> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, sum)| Reverse((sum.ns, sum.bytes)));
        let explained = |(key, sum): (&Key, &Sum)| ExplainedCollective {
            name: names.text(key.name),
            communicator: format!("{:08x}", key.communicator),
            rank: key.rank,
            ranks: key.ranks,
            calls: sum.calls,
            bytes: sum.bytes,
            ns: sum.ns,
            longest_ns: sum.longest_ns,
        };
        let rest = kinds.split_off(count.min(kinds.len()));
        let ns = rest.iter().fold(0, |total: u64, (_, sum)| total.saturating_add(sum.ns.unwrap_or(0)));
        let left_out = LeftOut { count: rest.len() as u64, ns };
        (kinds.into_iter().map(explained).collect(), left_out)
    }
}
