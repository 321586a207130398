//! Who holds memory.

use std::collections::HashMap;

use super::explanation::{HeldTag, RefusedAllocation, TagBytes};
use super::name_table::{LineId, NameId, NameTable};
use crate::record::{HeapChange, HeapRecord};

/// A block that was given out and not given back.
struct Live {
    tag: NameId,
    line: Option<LineId>,
    bytes: u64,
    since: u64,
}

/// The memory of one device.
#[derive(Default)]
pub(super) struct HeldMemory {
    changes: Vec<Change>,
    live: HashMap<u64, Live>,
    heap_peak_bytes: u64,
    refusals: u64,
    refused: Vec<Refused>,
}

/// An allocation that was refused.
struct Refused {
    known: RefusedAllocation,
    line: Option<LineId>,
    tags: Vec<(NameId, u64)>,
}

/// Refusals that are described.
const MAX_REFUSED: usize = 3;
/// Tags that are named with a refusal.
const NAMED_TAGS: usize = 3;

#[derive(Clone, Copy)]
struct Change {
    time: u64,
    tag: NameId,
    bytes: i64,
}

/// What was found.
#[derive(Default)]
pub(super) struct MemoryFound {
    pub(super) peak_bytes: u64,
    pub(super) peak_ns: u64,
    pub(super) tags: Vec<HeldTag>,
    pub(super) heap_peak_bytes: u64,
    pub(super) refusals: u64,
    pub(super) refused: Vec<RefusedAllocation>,
}

impl HeldMemory {
    pub(super) fn allocated(&mut self, block: u64, bytes: u64, tag: NameId, line: Option<LineId>, time: u64) {
        self.live.insert(block, Live { tag, line, bytes, since: time });
        self.changes.push(Change { time, tag, bytes: i64::try_from(bytes).unwrap_or(i64::MAX) });
    }

    /// A block that was given out before the recording began is not counted.
    pub(super) fn freed(&mut self, block: u64, time: u64) {
        if let Some(live) = self.live.remove(&block) {
            let bytes = i64::try_from(live.bytes).unwrap_or(i64::MAX);
            self.changes.push(Change { time, tag: live.tag, bytes: -bytes });
        }
    }

    /// The heap changed, or refused an allocation.
    pub(super) fn heap(&mut self, heap: &HeapRecord<'_>, line: Option<LineId>) {
        self.heap_peak_bytes = self.heap_peak_bytes.max(heap.held_bytes);
        if heap.change != HeapChange::OutOfMemory {
            return;
        }
        self.refusals += 1;
        if self.refused.len() < MAX_REFUSED {
            let known = RefusedAllocation {
                bytes: heap.bytes,
                time_ns: heap.time_ns,
                limit_bytes: (heap.limit_bytes > 0).then_some(heap.limit_bytes),
                held_bytes: heap.held_bytes,
                free_bytes: heap.free_bytes,
                largest_free_bytes: heap.largest_free_bytes,
                ..RefusedAllocation::default()
            };
            let tags = self.largest();
            self.refused.push(Refused { known, line, tags });
        }
    }

    pub(super) fn finish(mut self, names: &NameTable) -> MemoryFound {
        self.changes.sort_by_key(|change| change.time);
        let (mut used, mut peak, mut peak_ns, mut changes_at_peak) = (0_i64, 0, 0, 0);
        for (count, change) in (1..).zip(&self.changes) {
            used = used.saturating_add(change.bytes);
            if used > peak {
                (peak, peak_ns, changes_at_peak) = (used, change.time, count);
            }
        }
        let mut at_peak: HashMap<NameId, i64> = HashMap::new();
        for (count, change) in (1..).zip(&self.changes) {
            let tag = at_peak.entry(change.tag).or_default();
            if count <= changes_at_peak {
                *tag = tag.saturating_add(change.bytes);
            }
        }
        let mut tags: Vec<HeldTag> =
            at_peak.iter().map(|(tag, bytes)| self.tag(*tag, *bytes, names)).collect();
        tags.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then_with(|| a.tag.cmp(&b.tag)));
        let described = std::mem::take(&mut self.refused);
        let refused = described.into_iter().map(|Refused { known, line, tags }| {
            let tags =
                tags.into_iter().map(|(tag, bytes)| TagBytes { tag: names.text(tag), bytes }).collect();
            RefusedAllocation { line: names.line_text(line), tags, ..known }
        });
        let refused = refused.collect();
        let (heap_peak_bytes, refusals) = (self.heap_peak_bytes, self.refusals);
        let peak_bytes = u64::try_from(peak).unwrap_or_default();
        MemoryFound { peak_bytes, peak_ns, tags, heap_peak_bytes, refusals, refused }
    }

    /// The tags that hold most now.
    fn largest(&self) -> Vec<(NameId, u64)> {
        let mut held: HashMap<NameId, u64> = HashMap::new();
        for live in self.live.values() {
            let bytes = held.entry(live.tag).or_default();
            *bytes = bytes.saturating_add(live.bytes);
        }
        let mut tags: Vec<(NameId, u64)> = held.into_iter().collect();
        tags.sort_by_key(|(tag, bytes)| (std::cmp::Reverse(*bytes), *tag));
        tags.truncate(NAMED_TAGS);
        tags
    }

    fn tag(&self, tag: NameId, peak_bytes: i64, names: &NameTable) -> HeldTag {
        let left = || self.live.values().filter(|live| live.tag == tag);
        let mut lines: HashMap<Option<LineId>, u64> = HashMap::new();
        left().for_each(|live| *lines.entry(live.line).or_default() += live.bytes);
        let line = lines.into_iter().max_by_key(|(line, bytes)| (*bytes, *line)).and_then(|(line, _)| line);
        HeldTag {
            tag: names.text(tag),
            peak_bytes: u64::try_from(peak_bytes).unwrap_or_default(),
            left_bytes: left().fold(0, |sum: u64, live| sum.saturating_add(live.bytes)),
            left_blocks: left().count() as u64,
            left_line: names.line_text(line),
            left_since_ns: left().map(|live| live.since).min(),
        }
    }
}
