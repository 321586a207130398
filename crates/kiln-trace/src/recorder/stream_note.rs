//! What a stream did, as short as it can be noted.
//!
//! A note fills one or two slots of 64 bytes: a cache line each. Names and lines are numbers, and times are ticks; the thread that writes
//! the file makes events of them.

use std::panic::Location;

use super::known_name::{KnownLine, KnownName};
use super::slot_ring::SLOT_WORDS;
use super::tick_scale::TickScale;
use crate::record::{
    AwaitedBlock, CollectiveRecord, LaunchSize, StreamWaitRecord, SubmissionKind, SubmissionRecord, TimeSpan,
    TraceEvent, TraceStamp, TraceStream, WaitReason,
};

/// Work that was submitted to a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubmissionNote {
    /// Its number on the stream.
    pub number: u64,
    /// What kind of work it is.
    pub kind: SubmissionKind,
    /// The kernel, the operation, or the kind in words.
    pub name: KnownName,
    /// Which line submitted it.
    pub line: Option<&'static Location<'static>>,
    /// The shape of a launch.
    pub size: Option<LaunchSize>,
    /// Bytes that are moved or written; 0 where that is not known.
    pub bytes: u64,
    /// When the host began to submit it, in ticks.
    pub begin: u64,
    /// When the host had submitted it, in ticks.
    pub end: u64,
    /// When the device ran it, if that was measured, in nanoseconds of the recording.
    pub device: Option<TimeSpan>,
}

/// Work of a stream that waits for work of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitNote {
    /// What waits, by its number on the stream.
    pub waiter: u64,
    /// What it has to come after.
    pub writer: TraceStamp,
    /// The last submission of the writer's stream that the event in between covers.
    pub covers: u64,
    /// Why.
    pub reason: WaitReason,
    /// The memory it is about and its tag, if that is known.
    pub block: Option<(u64, KnownName)>,
    /// Which line asked for it, where the program did.
    pub line: Option<&'static Location<'static>>,
    /// When the host queued the wait, in ticks.
    pub time: u64,
}

/// What a submission is that is a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectiveNote {
    /// Its number on the stream.
    pub number: u64,
    /// The operation, such as `all_reduce`.
    pub name: KnownName,
    /// What the communicator is called on all its ranks.
    pub communicator: u64,
    /// This rank.
    pub rank: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// Bytes of the larger buffer.
    pub bytes: u64,
}

/// One note, which fills a slot.
pub(super) type Slot = [u64; SLOT_WORDS];

const SUBMISSION: u64 = 1;
const WAIT: u64 = 2;
const COLLECTIVE: u64 = 3;
/// A second slot follows: bytes, and the device's times.
const HAS_MORE: u64 = 1 << 16;
const HAS_SIZE: u64 = 1 << 17;
const HAS_DEVICE: u64 = 1 << 18;
const HAS_BLOCK: u64 = 1 << 19;

#[inline(always)]
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

#[inline(always)]
const fn low(word: u64) -> u32 {
    word as u32
}

#[inline(always)]
const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

impl SubmissionNote {
    /// Its first slot, with the number of its line, and the second if it needs one.
    #[inline(always)]
    pub(super) fn slots(&self, line: KnownLine) -> (Slot, Option<Slot>) {
        let mut head = SUBMISSION | (self.kind as u64) << 8;
        let LaunchSize { grid: [x, y, z], block: [u, v, w], shared_bytes } = match self.size {
            Some(size) => {
                head |= HAS_SIZE;
                size
            }
            None => LaunchSize { grid: [0; 3], block: [0; 3], shared_bytes: 0 },
        };
        let has_more = self.bytes != 0 && self.size.is_some() || self.device.is_some();
        if has_more {
            head |= HAS_MORE;
        }
        // Work without a shape has its bytes in the place of that.
        let shape = if self.size.is_some() { pair(x, y) } else { self.bytes };
        let first = [
            pair(low(head), shared_bytes),
            pair(self.name.number(), line.number()),
            self.number,
            self.begin,
            self.end,
            shape,
            pair(z, u),
            pair(v, w),
        ];
        (first, if has_more { Some(self.second_slot()) } else { None })
    }

    #[cold]
    fn second_slot(&self) -> Slot {
        let (flags, span) = match self.device {
            Some(span) => (HAS_DEVICE, span),
            None => (0, TimeSpan::default()),
        };
        [flags, self.bytes, span.begin_ns, span.end_ns, 0, 0, 0, 0]
    }
}

impl WaitNote {
    pub(super) fn slot(&self) -> Slot {
        let head = WAIT | (self.reason as u64) << 8;
        let (flag, (block, tag)) = match self.block {
            Some(block) => (HAS_BLOCK, block),
            None => (0, (0, KnownName::default())),
        };
        let TraceStream { device, stream } = self.writer.stream;
        let first = pair(low(head | flag), tag.number());
        let line = self.line.map_or(0, |line| KnownLine::of(line).number());
        let writer = pair(device, stream);
        [first, self.waiter, writer, self.writer.number, self.covers, block, self.time, line.into()]
    }
}

impl CollectiveNote {
    pub(super) fn slot(&self) -> Slot {
        let first = pair(low(COLLECTIVE), self.name.number());
        [first, self.number, self.communicator, pair(self.rank, self.ranks), self.bytes, 0, 0, 0]
    }
}

/// The event that one or two slots stand for; `next` gives the second.
pub(super) fn event(
    first: &Slot,
    next: impl FnOnce() -> Option<Slot>,
    stream: TraceStream,
    scale: &dyn TickScale,
) -> Option<TraceEvent<'static>> {
    let [head, ..] = *first;
    match head & 0xff {
        SUBMISSION => submission(first, next, stream, scale).map(TraceEvent::Submission),
        WAIT => {
            let [_, waiter, writer, number, covers, block, time, line] = *first;
            let block = if head & HAS_BLOCK == 0 {
                None
            } else {
                Some(AwaitedBlock { block, tag: KnownName::numbered(high(head)).text() })
            };
            Some(TraceEvent::StreamWait(StreamWaitRecord {
                waiter: TraceStamp { stream, number: waiter },
                writer: TraceStamp {
                    stream: TraceStream { device: low(writer), stream: high(writer) },
                    number,
                },
                covers,
                reason: WaitReason::numbered((head >> 8) as u8)?,
                block,
                line: KnownLine::numbered(low(line)).line(),
                time_ns: scale.time_ns(time),
            }))
        }
        COLLECTIVE => {
            let [_, number, communicator, ranks, bytes, ..] = *first;
            Some(TraceEvent::Collective(CollectiveRecord {
                stamp: TraceStamp { stream, number },
                name: KnownName::numbered(high(head)).text(),
                communicator,
                rank: low(ranks),
                ranks: high(ranks),
                bytes,
            }))
        }
        _ => None,
    }
}

fn submission(
    first: &Slot,
    next: impl FnOnce() -> Option<Slot>,
    stream: TraceStream,
    scale: &dyn TickScale,
) -> Option<SubmissionRecord<'static>> {
    let [head, names, number, begin, end, shape, more, rest] = *first;
    let size = LaunchSize {
        grid: [low(shape), high(shape), low(more)],
        block: [high(more), low(rest), high(rest)],
        shared_bytes: high(head),
    };
    let has_size = head & HAS_SIZE != 0;
    let mut record = SubmissionRecord {
        stamp: TraceStamp { stream, number },
        kind: SubmissionKind::numbered((head >> 8) as u8)?,
        name: KnownName::numbered(low(names)).text(),
        line: KnownLine::numbered(high(names)).line(),
        size: if has_size { Some(size) } else { None },
        bytes: if has_size { 0 } else { shape },
        host: TimeSpan::new(scale.time_ns(begin), scale.time_ns(end)),
        device: None,
    };
    if head & HAS_MORE != 0 {
        let [flags, bytes, begin_ns, end_ns, ..] = next()?;
        record.bytes = bytes;
        record.device = if flags & HAS_DEVICE == 0 { None } else { Some(TimeSpan { begin_ns, end_ns }) };
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::super::tick_scale::NanosecondTicks;
    use super::*;

    const STREAM: TraceStream = TraceStream { device: 3, stream: 61 };

    fn back(first: Slot, second: Option<Slot>) -> TraceEvent<'static> {
        event(&first, || second, STREAM, &NanosecondTicks).unwrap()
    }

    #[test]
    fn every_field_of_a_submission_comes_back() {
        let size = LaunchSize { grid: [u32::MAX, 2, 3], block: [4, u32::MAX, 6], shared_bytes: u32::MAX };
        let line = Location::caller();
        for (size, bytes, device) in [
            (Some(size), 0, None),
            (Some(size), u64::MAX, None),
            (None, u64::MAX, None),
            (None, 7, Some(TimeSpan::new(1, u64::MAX))),
            (Some(size), 7, Some(TimeSpan::new(5, 6))),
        ] {
            for kind in [SubmissionKind::Kernel, SubmissionKind::Library, SubmissionKind::Other] {
                let note = SubmissionNote {
                    number: u64::MAX,
                    kind,
                    name: KnownName::of("k"),
                    line: Some(line),
                    size,
                    bytes,
                    begin: 9,
                    end: u64::MAX,
                    device,
                };
                let (first, second) = note.slots(KnownLine::of(line));
                let TraceEvent::Submission(record) = back(first, second) else { unreachable!() };
                assert_eq!(record.stamp, TraceStamp { stream: STREAM, number: u64::MAX });
                assert_eq!((record.kind, record.name, record.bytes), (kind, "k", bytes));
                assert_eq!((record.size, record.device), (size, device));
                assert_eq!(record.host, TimeSpan::new(9, u64::MAX));
                assert_eq!(record.line.map(|line| line.line), Some(line.line()));
            }
        }
    }

    #[test]
    fn every_field_of_waits_and_collectives_comes_back() {
        let writer = TraceStamp { stream: TraceStream { device: u32::MAX, stream: 7 }, number: u64::MAX - 1 };
        let line = Location::caller();
        for (block, reason, line) in [
            (None, WaitReason::Unknown, None),
            (None, WaitReason::Asked, Some(line)),
            (Some((u64::MAX, KnownName::of("weights"))), WaitReason::WriteAfterRead, None),
            (Some((0, KnownName::default())), WaitReason::ReadAfterWrite, None),
        ] {
            let wait = WaitNote { waiter: 5, writer, covers: u64::MAX, reason, block, line, time: 11 };
            let TraceEvent::StreamWait(record) = back(wait.slot(), None) else { unreachable!() };
            assert_eq!(record.waiter, TraceStamp { stream: STREAM, number: 5 });
            assert_eq!((record.writer, record.covers, record.time_ns), (writer, u64::MAX, 11));
            let tagged = block.map(|(block, tag)| AwaitedBlock { block, tag: tag.text() });
            assert_eq!((record.reason, record.block), (reason, tagged));
            assert_eq!(record.line.map(|line| line.line), line.map(Location::line));
        }
        let name = KnownName::of("all_reduce");
        let note = CollectiveNote { number: 4, name, communicator: u64::MAX, rank: 6, ranks: 8, bytes: 9 };
        let TraceEvent::Collective(record) = back(note.slot(), None) else { unreachable!() };
        let stamp = TraceStamp { stream: STREAM, number: 4 };
        let expected = CollectiveRecord {
            stamp,
            name: "all_reduce",
            communicator: u64::MAX,
            rank: 6,
            ranks: 8,
            bytes: 9,
        };
        assert_eq!(record, expected);
    }

    #[test]
    fn a_slot_that_says_nothing_is_no_event() {
        let none = |first: Slot| event(&first, || None, STREAM, &NanosecondTicks).is_none();
        assert!(none([0; SLOT_WORDS]) && none([u64::MAX; SLOT_WORDS]));
        assert!(none([SUBMISSION | HAS_MORE, 0, 1, 0, 0, 0, 0, 0]), "its second half is missing");
    }
}
