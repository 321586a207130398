//! Who holds memory.

use std::collections::{BTreeMap, HashMap};

use super::explanation::{ExplainedHeapChange, HeldTag, RefusedAllocation, TagBytes};
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
    /// The last changes, which may still be out of order.
    changes: Vec<Change>,
    peak: Peak,
    live: HashMap<u64, Live>,
    /// Blocks that there was no room for, by tag.
    untold: HashMap<NameId, u64>,
    heap_peak_bytes: u64,
    is_pool: bool,
    /// By what the heap did, and by tag: how often, and bytes.
    heap_changes: BTreeMap<HeapChange, BTreeMap<NameId, (u64, u64)>>,
    refusals: u64,
    refused: Vec<Refused>,
}

/// How much is held, and how much was when it was most.
#[derive(Default)]
struct Peak {
    used: i64,
    most: i64,
    most_ns: u64,
    held: HashMap<NameId, i64>,
    /// What changed since it was most.
    since: HashMap<NameId, i64>,
}

impl Peak {
    fn change(&mut self, change: &Change) {
        self.used = self.used.saturating_add(change.bytes);
        for tags in [&mut self.held, &mut self.since] {
            let bytes = tags.entry(change.tag).or_default();
            *bytes = bytes.saturating_add(change.bytes);
        }
        if self.used > self.most {
            (self.most, self.most_ns) = (self.used, change.time);
            self.since.clear();
        }
    }
}

/// An allocation that was refused.
struct Refused {
    known: RefusedAllocation,
    line: Option<LineId>,
    tags: Vec<(NameId, u64)>,
}

/// Changes among which the order is found.
const MAX_CHANGES: usize = 1 << 16;
/// Blocks that are told apart while they are in use. Of others the bytes are counted, and no line is known.
const MAX_LIVE: usize = 1 << 20;
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
    pub(super) is_pool: bool,
    pub(super) heap_changes: Vec<ExplainedHeapChange>,
    pub(super) refusals: u64,
    pub(super) refused: Vec<RefusedAllocation>,
}

impl HeldMemory {
    pub(super) fn allocated(&mut self, block: u64, bytes: u64, tag: NameId, line: Option<LineId>, time: u64) {
        if self.live.len() < MAX_LIVE || self.live.contains_key(&block) {
            self.live.insert(block, Live { tag, line, bytes, since: time });
        } else {
            *self.untold.entry(tag).or_default() += 1;
        }
        self.change(Change { time, tag, bytes: i64::try_from(bytes).unwrap_or(i64::MAX) });
    }

    /// A block that was given out before the recording began is not counted.
    pub(super) fn freed(&mut self, block: u64, bytes: u64, tag: NameId, time: u64) {
        let (tag, bytes) = match (self.live.remove(&block), self.untold.get_mut(&tag)) {
            (Some(live), _) => (live.tag, live.bytes),
            (None, Some(blocks @ 1..)) => {
                *blocks -= 1;
                (tag, bytes)
            }
            _ => return,
        };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.change(Change { time, tag, bytes: -bytes });
    }

    /// Changes come nearly in the order of their times.
    fn change(&mut self, change: Change) {
        self.changes.push(change);
        if self.changes.len() >= MAX_CHANGES {
            self.settle(MAX_CHANGES / 2);
        }
    }

    /// Counts the first changes.
    fn settle(&mut self, count: usize) {
        self.changes.sort_by_key(|change| change.time);
        let first = self.changes.drain(..count.min(self.changes.len()));
        first.for_each(|change| self.peak.change(&change));
    }

    /// The heap changed, or refused an allocation.
    pub(super) fn heap(&mut self, heap: &HeapRecord<'_>, tag: NameId, line: Option<LineId>) {
        self.heap_peak_bytes = self.heap_peak_bytes.max(heap.held_bytes);
        self.is_pool |= heap.change.is_of_pool();
        if !heap.change.is_refusal() {
            let (times, bytes) = self.heap_changes.entry(heap.change).or_default().entry(tag).or_default();
            *times += 1;
            *bytes = bytes.saturating_add(heap.bytes);
            return;
        }
        self.refusals += 1;
        if self.refused.len() < MAX_REFUSED {
            let known = RefusedAllocation {
                bytes: heap.bytes,
                is_too_large: heap.change == HeapChange::TooLarge,
                time_ns: heap.time_ns,
                limit_bytes: (heap.limit_bytes > 0).then_some(heap.limit_bytes),
                held_bytes: heap.held_bytes,
                is_pool: self.is_pool,
                free_bytes: heap.free_bytes,
                largest_free_bytes: heap.largest_free_bytes,
                ..RefusedAllocation::default()
            };
            let tags = self.largest();
            self.refused.push(Refused { known, line, tags });
        }
    }

    pub(super) fn finish(mut self, names: &NameTable) -> MemoryFound {
        self.settle(usize::MAX);
        let Peak { most, most_ns, held, since, .. } = std::mem::take(&mut self.peak);
        let at_peak =
            |(tag, held): (&NameId, &i64)| (*tag, held.saturating_sub(since.get(tag).copied().unwrap_or(0)));
        let at_peak: HashMap<NameId, i64> = held.iter().map(at_peak).collect();
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
        let heap_changes =
            self.heap_changes.iter().map(|(change, tags)| explained(*change, tags, names)).collect();
        MemoryFound {
            peak_bytes: u64::try_from(most).unwrap_or_default(),
            peak_ns: most_ns,
            tags,
            heap_peak_bytes: self.heap_peak_bytes,
            is_pool: self.is_pool,
            heap_changes,
            refusals: self.refusals,
            refused,
        }
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

/// What the heap did in one way, with the tag for which it did most.
fn explained(
    change: HeapChange,
    tags: &BTreeMap<NameId, (u64, u64)>,
    names: &NameTable,
) -> ExplainedHeapChange {
    let sum = |of: fn(&(u64, u64)) -> u64| tags.values().map(of).fold(0, u64::saturating_add);
    let (times, bytes) = (sum(|(times, _)| *times), sum(|(_, bytes)| *bytes));
    let known =
        tags.iter().map(|(tag, (_, bytes))| (names.text(*tag), *bytes)).filter(|(tag, _)| !tag.is_empty());
    let (tag, tag_bytes) = known.max_by_key(|(_, bytes)| *bytes).unwrap_or_default();
    ExplainedHeapChange { change, times, bytes, tag, tag_bytes }
}
