//! Memory by tag over time.
//!
//! What is kept are sums of changes in buckets of one width, for each device and tag. When time goes on for too long, pairs of buckets
//! are added and all are twice as wide. So the amount at the end of a bucket is exact, in whatever order events came. Memory that is taken and
//! given back within one bucket is in the most of it: of all tags, with what each had then, and of each tag alone.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Range, RangeInclusive};

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

#[derive(Default)]
struct TagChanges {
    /// None for all tags that are not told apart.
    tag: Option<NameId>,
    changes: Vec<i64>,
    /// The most bytes in a bucket with changes of this tag.
    high: Vec<i64>,
    /// Bytes of this tag when all tags together had most, in a bucket with changes.
    at_high: Vec<i64>,
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
    /// Bytes when all tags together had most in each step: these of all tags make up [`MemoryCurve::high`].
    pub at_high: Vec<i64>,
    /// The most bytes in any of the steps.
    pub most: i64,
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
            let inside = |step: u64| ((step << wider) as usize)..(((step + 1) << wider) as usize);
            let mut tags: Vec<TagCurve> =
                memory.tags.iter().map(|tag| tag.curve(ends(), &steps, inside)).collect();
            let mut high = Vec::new();
            for (at, step) in steps.clone().enumerate() {
                let at_end: i64 = tags.iter().map(|tag| tag.at_high[at]).sum();
                let most = largest(&memory.high, inside(step)).filter(|(_, most)| *most > at_end);
                if let Some((bucket, _)) = most {
                    for (curve, tag) in tags.iter_mut().zip(&memory.tags) {
                        curve.at_high[at] = tag.at_high.get(bucket).copied().unwrap_or(0);
                    }
                }
                high.push(most.map_or(at_end, |(_, most)| most));
            }
            MemoryCurve {
                device: *device,
                begin_ns: steps.start() << wider << self.level,
                step_ns: 1 << wider << self.level,
                high,
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
        memory.note_high(at);
        memory.now = memory.now.saturating_add(bytes);
        if memory.now > memory.peak {
            (memory.peak, memory.peak_ns) = (memory.now, time_ns);
        }
        let tag = memory.tag(tag);
        let before = tag.now;
        tag.now = tag.now.saturating_add(bytes);
        let high = place(&mut tag.high, at);
        *high = before.max(tag.now).max(*high);
        let changes = place(&mut tag.changes, at);
        *changes = changes.saturating_add(bytes);
        memory.note_high(at);
    }
}

impl DeviceMemory {
    /// What is in use now is the most of a bucket, if that was less.
    fn note_high(&mut self, at: usize) {
        let high = place(&mut self.high, at);
        if self.now > *high {
            *high = self.now;
            for tag in &mut self.tags {
                *place(&mut tag.at_high, at) = tag.now;
            }
        }
    }

    fn tag(&mut self, tag: NameId) -> &mut TagChanges {
        let wanted = Some(tag);
        let at = match self.tags.iter().position(|known| known.tag == wanted) {
            Some(at) => at,
            None if self.tags.len() < MAX_TAGS => {
                self.tags.push(TagChanges { tag: wanted, ..TagChanges::default() });
                self.tags.len() - 1
            }
            None => {
                if self.tags.len() == MAX_TAGS {
                    self.tags.push(TagChanges { tag: None, ..TagChanges::default() });
                }
                MAX_TAGS
            }
        };
        &mut self.tags[at]
    }

    fn widen(&mut self) {
        let high = &self.high;
        for tag in &mut self.tags {
            tag.changes = tag
                .changes
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |a: i64, b| a.saturating_add(*b)))
                .collect();
            tag.high = tag.high.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
            let at_high = |pair: usize| {
                let bucket = largest(high, pair..pair + 2).map_or(pair, |(bucket, _)| bucket);
                tag.at_high.get(bucket).copied().unwrap_or(0)
            };
            tag.at_high = (0..tag.at_high.len()).step_by(2).map(at_high).collect();
        }
        let last =
            |pair: &[i64]| pair.iter().rev().copied().find(|held| *held != NO_CHANGE).unwrap_or(NO_CHANGE);
        self.heap = self.heap.chunks(2).map(last).collect();
        self.high = self.high.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
    }
}

impl TagChanges {
    /// The curve of the tag over some steps, each of some buckets, as if each step had most at its end.
    fn curve(
        &self,
        ends: impl Iterator<Item = usize>,
        steps: &RangeInclusive<u64>,
        inside: impl Fn(u64) -> Range<usize>,
    ) -> TagCurve {
        let bytes = amounts(&self.changes, ends);
        let within = largest(&self.high, inside(*steps.start()).start..inside(*steps.end()).end);
        let most = bytes.iter().copied().chain(within.map(|(_, most)| most)).max().unwrap_or(0).max(0);
        TagCurve { tag: self.tag, at_high: bytes.clone(), bytes, most }
    }
}

/// The first largest of some places of a list, and where it is; none where the list has none of them.
fn largest(list: &[i64], places: Range<usize>) -> Option<(usize, i64)> {
    let end = places.end.min(list.len());
    let places = places.start.min(end)..end;
    let largest = list[places.clone()].iter().copied().zip(places);
    largest
        .max_by_key(|(value, place)| (*value, std::cmp::Reverse(*place)))
        .map(|(value, place)| (place, value))
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
