//! What ran on the streams of a recording, by stream and number.

use std::collections::BTreeMap;

use super::name_table::{LineId, NameId};
use crate::record::{TimeSpan, TraceStamp, TraceStream};

/// One submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) stamp: TraceStamp,
    pub(super) name: NameId,
    pub(super) line: Option<LineId>,
    pub(super) host: TimeSpan,
    pub(super) device: Option<TimeSpan>,
}

/// The submissions of every stream.
#[derive(Default)]
pub(super) struct Timeline {
    streams: BTreeMap<TraceStream, Vec<Work>>,
}

impl Timeline {
    pub(super) fn add(&mut self, work: Work) {
        self.streams.entry(work.stamp.stream).or_default().push(work);
    }

    /// Sorts what came out of order.
    pub(super) fn sort(&mut self) {
        self.streams.values_mut().for_each(|stream| stream.sort_by_key(|work| work.stamp.number));
    }

    /// The numbers of the devices that did something.
    pub(super) fn devices(&self) -> Vec<u32> {
        let mut devices: Vec<u32> = self.streams.keys().map(|stream| stream.device).collect();
        devices.dedup();
        devices
    }

    /// The submissions of a device's streams.
    pub(super) fn of_device(&self, device: u32) -> impl Iterator<Item = &Vec<Work>> {
        self.streams.iter().filter(move |(stream, _)| stream.device == device).map(|(_, work)| work)
    }

    /// A submission, or the last one before it that is known.
    pub(super) fn up_to(&self, stamp: TraceStamp) -> Option<&Work> {
        let (stream, behind) = self.place(stamp)?;
        stream.get(behind.checked_sub(1)?)
    }

    /// A submission, or the first one behind it: waits that were queued alone belong to the work that follows.
    pub(super) fn from(&self, stamp: TraceStamp) -> Option<(&Work, Option<&Work>)> {
        let stream = self.streams.get(&stamp.stream)?;
        let at = stream.partition_point(|work| work.stamp.number < stamp.number);
        Some((stream.get(at)?, at.checked_sub(1).and_then(|before| stream.get(before))))
    }

    fn place(&self, stamp: TraceStamp) -> Option<(&Vec<Work>, usize)> {
        let stream = self.streams.get(&stamp.stream)?;
        Some((stream, stream.partition_point(|work| work.stamp.number <= stamp.number)))
    }
}
