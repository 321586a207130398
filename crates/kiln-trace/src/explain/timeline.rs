//! What ran on the streams of a recording, by stream and number: the part that is looked at now, and what was settled before it.

use std::collections::BTreeMap;

use super::name_table::{LineId, NameId};
use crate::record::{TimeSpan, TraceStamp, TraceStream};

/// Streams of which the last work is kept, however long ago it was.
const MAX_STREAMS: usize = 1 << 16;

/// One submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) stamp: TraceStamp,
    pub(super) name: NameId,
    pub(super) line: Option<LineId>,
    pub(super) host: TimeSpan,
    pub(super) device: Option<TimeSpan>,
}

impl Work {
    /// When it began, or else was submitted.
    pub(super) fn begin_ns(&self) -> u64 {
        self.device.unwrap_or(self.host).begin_ns
    }
}

/// How far a submission was looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    /// Not yet.
    Fresh,
    /// It is being looked at.
    Settling,
    /// It was, and is kept for those that waited for it.
    Settled,
}

/// The submissions of every stream.
#[derive(Default)]
pub(super) struct Timeline {
    streams: BTreeMap<TraceStream, Vec<(Stage, Work)>>,
}

impl Timeline {
    pub(super) fn add(&mut self, work: Work) {
        self.streams.entry(work.stamp.stream).or_default().push((Stage::Fresh, work));
    }

    /// Begins to look at those that began before a time.
    pub(super) fn begin_settling(&mut self, before_ns: u64) {
        for stream in self.streams.values_mut() {
            stream.sort_by_key(|(_, work)| work.stamp.number);
            let due = stream.iter_mut().filter(|(stage, work)| {
                *stage == Stage::Fresh && (work.begin_ns() < before_ns || before_ns == u64::MAX)
            });
            due.for_each(|(stage, _)| *stage = Stage::Settling);
        }
    }

    /// Ends that: what was settled before goes, but for the last of each stream, which the next follows.
    pub(super) fn end_settling(&mut self) {
        let keeps_last = self.streams.len() <= MAX_STREAMS;
        for stream in self.streams.values_mut() {
            let last = stream.iter().rposition(|(stage, _)| *stage != Stage::Fresh).filter(|_| keeps_last);
            let mut at = 0;
            stream.retain(|(stage, _)| {
                at += 1;
                *stage != Stage::Settled || last == Some(at - 1)
            });
            let settled = stream.iter_mut().filter(|(stage, _)| *stage == Stage::Settling);
            settled.for_each(|(stage, _)| *stage = Stage::Settled);
            give_back(stream);
        }
        self.streams.retain(|_, stream| !stream.is_empty());
    }

    /// The time before which half of what is fresh began; none if nothing is.
    pub(super) fn middle_ns(&self) -> Option<u64> {
        let fresh = self.streams.values().flatten().filter(|(stage, _)| *stage == Stage::Fresh);
        let mut begins: Vec<u64> = fresh.map(|(_, work)| work.begin_ns()).collect();
        if begins.is_empty() {
            return None;
        }
        let middle = begins.len() / 2;
        let (earlier, at, _) = begins.select_nth_unstable(middle);
        let at = *at;
        // Where very many began at one time, it is the time behind that.
        let are_before = earlier.iter().filter(|begin| **begin < at).count();
        Some(if are_before * 2 < middle { at.saturating_add(1) } else { at })
    }

    /// How many were not looked at.
    pub(super) fn fresh(&self) -> usize {
        self.streams.values().flatten().filter(|(stage, _)| *stage == Stage::Fresh).count()
    }

    /// The numbers of the devices with work that is being looked at.
    pub(super) fn settling_devices(&self) -> Vec<u32> {
        let mut devices: Vec<u32> = self.streams.keys().map(|stream| stream.device).collect();
        devices.dedup();
        devices
    }

    /// The submissions of a device that are being looked at.
    pub(super) fn settling(&self, device: u32) -> impl Iterator<Item = &Work> {
        let own = self.streams.iter().filter(move |(stream, _)| stream.device == device);
        own.flat_map(|(_, works)| works)
            .filter_map(|(stage, work)| (*stage == Stage::Settling).then_some(work))
    }

    /// A submission, or the last one before it that is known.
    pub(super) fn up_to(&self, stamp: TraceStamp) -> Option<&Work> {
        let stream = self.streams.get(&stamp.stream)?;
        let behind = stream.partition_point(|(_, work)| work.stamp.number <= stamp.number);
        stream.get(behind.checked_sub(1)?).map(|(_, work)| work)
    }

    /// A submission.
    pub(super) fn exactly(&self, stamp: TraceStamp) -> Option<&Work> {
        self.up_to(stamp).filter(|work| work.stamp == stamp)
    }

    /// A submission, or the first one behind it: waits that were queued alone belong to the work that follows. And the one before.
    pub(super) fn from(&self, stamp: TraceStamp) -> Waiter<'_> {
        let Some(stream) = self.streams.get(&stamp.stream) else { return Waiter::Awaited };
        let at = stream.partition_point(|(_, work)| work.stamp.number < stamp.number);
        let before = at.checked_sub(1).and_then(|before| stream.get(before)).map(|(_, work)| work);
        match stream.get(at) {
            None | Some((Stage::Fresh, _)) => Waiter::Awaited,
            Some((Stage::Settling, work)) => Waiter::Settling(work, before),
            Some((Stage::Settled, _)) => Waiter::Settled,
        }
    }
}

/// Gives memory back that much fewer entries do not need.
pub(super) fn give_back<T>(entries: &mut Vec<T>) {
    if entries.capacity() > 4 * entries.len() {
        entries.shrink_to(2 * entries.len());
    }
}

/// How far the work is that waits.
pub(super) enum Waiter<'a> {
    /// It comes later.
    Awaited,
    /// It is being looked at; and the work before it.
    Settling(&'a Work, Option<&'a Work>),
    /// It was looked at before its wait was known.
    Settled,
}
