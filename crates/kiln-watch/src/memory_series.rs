//! Memory by tag over time.
//!
//! What is kept are sums of changes in buckets of one width, for each device and tag. When time goes on for too long, pairs of buckets
//! are added and all are twice as wide. So the amount at the end of a bucket is exact, in whatever order events came.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::name_table::NameId;

/// Buckets of a tag.
const MAX_BUCKETS: u64 = 8192;
/// The first width is 2 to the power of this, in nanoseconds.
const FIRST_LEVEL: u32 = 10;
/// Tags of a device that are told apart.
const MAX_TAGS: usize = 24;
/// Devices whose memory is shown.
const MAX_DEVICES: usize = 64;
/// Blocks in use that are remembered, to leave out frees of blocks that are older than the recording.
const MAX_LIVE: usize = 1 << 21;

/// Memory of all devices.
pub(crate) struct MemorySeries {
    level: u32,
    devices: BTreeMap<u32, DeviceMemory>,
}

#[derive(Default)]
struct DeviceMemory {
    tags: Vec<TagChanges>,
    /// The most that was in use in a bucket, as far as the order of events tells.
    high: Vec<i64>,
    now: i64,
    peak: i64,
    peak_ns: u64,
    live: HashSet<u64>,
    forgets: bool,
    /// What the heap held last in a bucket, as far as it changed there.
    heap: Vec<i64>,
}

/// In a bucket without a change of the heap.
const NO_CHANGE: i64 = -1;

struct TagChanges {
    /// None for all tags that are not told apart.
    tag: Option<NameId>,
    changes: Vec<i64>,
    /// Bytes at last.
    now: i64,
}

/// Memory of one device over a part of the time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryCurve {
    /// The device.
    pub device: u32,
    /// When the first point is.
    pub begin_ns: u64,
    /// From one point to the next.
    pub step_ns: u64,
    /// Bytes of each tag at the end of each step.
    pub tags: Vec<TagCurve>,
    /// The most bytes of all tags in each step.
    pub high: Vec<i64>,
    /// Bytes that the heap holds at the end of each step; empty if that is not recorded.
    pub heap: Vec<i64>,
    /// The most bytes of the whole recording.
    pub peak_bytes: i64,
    /// When that was.
    pub peak_ns: u64,
}

/// Memory of one tag.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TagCurve {
    /// The tag; empty for memory without one, none for all tags beyond the first few.
    pub tag: Option<NameId>,
    /// Bytes at the end of each step.
    pub bytes: Vec<i64>,
}

impl Default for MemorySeries {
    fn default() -> Self {
        Self { level: FIRST_LEVEL, devices: BTreeMap::new() }
    }
}

impl MemorySeries {
    pub(crate) fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    pub(crate) fn allocated(&mut self, device: u32, block: u64, bytes: u64, tag: NameId, time_ns: u64) {
        let Some(memory) = self.device(device) else { return };
        match memory.live.len() < MAX_LIVE {
            true => drop(memory.live.insert(block)),
            false => memory.forgets = true,
        }
        self.change(device, tag, i64::try_from(bytes).unwrap_or(i64::MAX), time_ns);
    }

    pub(crate) fn freed(&mut self, device: u32, block: u64, bytes: u64, tag: NameId, time_ns: u64) {
        let Some(memory) = self.device(device) else { return };
        if memory.live.remove(&block) || memory.forgets {
            self.change(device, tag, -i64::try_from(bytes).unwrap_or(i64::MAX), time_ns);
        }
    }

    /// The heap of a device holds so many bytes since.
    pub(crate) fn heap(&mut self, device: u32, held_bytes: u64, time_ns: u64) {
        let at = self.make_room(time_ns);
        let Some(memory) = self.device(device) else { return };
        if memory.heap.len() <= at {
            memory.heap.resize(at + 1, NO_CHANGE);
        }
        if let Some(held) = memory.heap.get_mut(at) {
            *held = i64::try_from(held_bytes).unwrap_or(i64::MAX);
        }
    }

    /// The tags of a device that hold most now, the largest first.
    pub(crate) fn largest_tags(&self, device: u32, count: usize) -> Vec<(Option<NameId>, u64)> {
        let tags = self.devices.get(&device).map(|memory| memory.tags.as_slice()).unwrap_or_default();
        let held = tags.iter().filter_map(|tag| Some((tag.tag, u64::try_from(tag.now).ok()?)));
        let mut largest: Vec<_> = held.filter(|(_, bytes)| *bytes > 0).collect();
        largest.sort_by_key(|(tag, bytes)| (std::cmp::Reverse(*bytes), *tag));
        largest.truncate(count);
        largest
    }

    /// Bytes of a device in use, and the most there were.
    pub(crate) fn now_and_peak(&self, device: u32) -> (i64, i64) {
        self.devices.get(&device).map_or((0, 0), |memory| (memory.now, memory.peak))
    }

    /// The curves between two times, with at most so many points.
    pub(crate) fn curves(&self, begin_ns: u64, end_ns: u64, points: usize) -> Vec<MemoryCurve> {
        let points = points.max(1) as u64;
        let (first, last) = (begin_ns >> self.level, end_ns.max(begin_ns) >> self.level);
        let last = last.min(first.saturating_add(MAX_BUCKETS));
        let mut wider = 0;
        while (last >> wider) - (first >> wider) + 1 > points {
            wider += 1;
        }
        let steps = (first >> wider)..=(last >> wider);
        let curve = |(device, memory): (&u32, &DeviceMemory)| {
            let ends = || steps.clone().map(|step| ((step + 1) << wider) as usize);
            let tags: Vec<TagCurve> = memory
                .tags
                .iter()
                .map(|tag| TagCurve { tag: tag.tag, bytes: amounts(&tag.changes, ends()) })
                .collect();
            let high = steps.clone().zip(0..).map(|(step, at)| {
                let inside = ((step << wider) as usize)..(((step + 1) << wider) as usize);
                let inside = inside.start.min(memory.high.len())..inside.end.min(memory.high.len());
                let most = memory.high.get(inside).unwrap_or_default().iter().copied().max().unwrap_or(0);
                let sum: i64 = tags.iter().filter_map(|tag| tag.bytes.get(at as usize)).sum();
                most.max(sum)
            });
            MemoryCurve {
                device: *device,
                begin_ns: steps.start() << wider << self.level,
                step_ns: 1 << wider << self.level,
                high: high.collect(),
                heap: last_held(&memory.heap, ends()),
                peak_bytes: memory.peak,
                peak_ns: memory.peak_ns,
                tags,
            }
        };
        self.devices.iter().map(curve).collect()
    }

    fn device(&mut self, device: u32) -> Option<&mut DeviceMemory> {
        if self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(&device) {
            return None;
        }
        Some(self.devices.entry(device).or_default())
    }

    /// The bucket of a time; buckets are widened until there is one.
    fn make_room(&mut self, time_ns: u64) -> usize {
        while time_ns >> self.level >= MAX_BUCKETS {
            self.level += 1;
            self.devices.values_mut().for_each(DeviceMemory::widen);
        }
        (time_ns >> self.level) as usize
    }

    fn change(&mut self, device: u32, tag: NameId, bytes: i64, time_ns: u64) {
        let at = self.make_room(time_ns);
        let Some(memory) = self.device(device) else { return };
        memory.now = memory.now.saturating_add(bytes);
        if memory.now > memory.peak {
            (memory.peak, memory.peak_ns) = (memory.now, time_ns);
        }
        let now = memory.now;
        let high = place(&mut memory.high, at);
        *high = now.max(*high);
        let tag = memory.tag(tag);
        tag.now = tag.now.saturating_add(bytes);
        let changes = place(&mut tag.changes, at);
        *changes = changes.saturating_add(bytes);
    }
}

impl DeviceMemory {
    fn tag(&mut self, tag: NameId) -> &mut TagChanges {
        let wanted = Some(tag);
        let at = match self.tags.iter().position(|known| known.tag == wanted) {
            Some(at) => at,
            None if self.tags.len() < MAX_TAGS => {
                self.tags.push(TagChanges { tag: wanted, changes: Vec::new(), now: 0 });
                self.tags.len() - 1
            }
            None => {
                if self.tags.len() == MAX_TAGS {
                    self.tags.push(TagChanges { tag: None, changes: Vec::new(), now: 0 });
                }
                MAX_TAGS
            }
        };
        &mut self.tags[at]
    }

    fn widen(&mut self) {
        for tag in &mut self.tags {
            tag.changes = tag
                .changes
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |a: i64, b| a.saturating_add(*b)))
                .collect();
        }
        let last =
            |pair: &[i64]| pair.iter().rev().copied().find(|held| *held != NO_CHANGE).unwrap_or(NO_CHANGE);
        self.heap = self.heap.chunks(2).map(last).collect();
        self.high = self.high.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
    }
}

/// Sums of all changes up to each of some places, which ascend.
fn amounts(changes: &[i64], ends: impl Iterator<Item = usize>) -> Vec<i64> {
    let (mut sum, mut at) = (0_i64, 0);
    ends.map(|end| {
        let end = end.min(changes.len()).max(at);
        sum = changes.get(at..end).unwrap_or_default().iter().fold(sum, |a, b| a.saturating_add(*b));
        at = end;
        sum
    })
    .collect()
}

/// What was held last before each of some places, which ascend; nothing if it never changed.
fn last_held(heap: &[i64], ends: impl Iterator<Item = usize>) -> Vec<i64> {
    if heap.is_empty() {
        return Vec::new();
    }
    let (mut held, mut at) = (0, 0);
    ends.map(|end| {
        let end = end.min(heap.len()).max(at);
        let inside = heap.get(at..end).unwrap_or_default();
        held = inside.iter().rev().copied().find(|held| *held != NO_CHANGE).unwrap_or(held);
        at = end;
        held
    })
    .collect()
}

fn place(list: &mut Vec<i64>, at: usize) -> &mut i64 {
    if list.len() <= at {
        list.resize(at + 1, 0);
    }
    &mut list[at]
}
