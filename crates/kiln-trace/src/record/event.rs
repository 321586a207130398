//! One event of a recording.

use super::{
    AllocationRecord, CollectiveRecord, CommandRecord, DeviceRecord, DroppedRecord, EarlierRecord, EndRecord,
    FaultRecord, FindingRecord, FreeRecord, HeapRecord, HostWaitRecord, PostMortemRecord, StartRecord,
    StreamRecord, StreamWaitRecord, SubmissionRecord, TakeoverRecord, WorkerRecord,
};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// One event. Names are borrowed: from the program that writes it, or from the block it is read from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TraceEvent<'a> {
    /// What the recording is of.
    Start(StartRecord<'a>),
    /// A device, before its first event.
    Device(DeviceRecord<'a>),
    /// A stream, before its first event.
    Stream(StreamRecord<'a>),
    /// Work that was submitted.
    Submission(SubmissionRecord<'a>),
    /// Work that waits on the device.
    StreamWait(StreamWaitRecord<'a>),
    /// A thread that waited.
    HostWait(HostWaitRecord<'a>),
    /// Memory that was given out.
    Allocation(AllocationRecord<'a>),
    /// Memory that was given back.
    Free(FreeRecord<'a>),
    /// The heap took memory from the device, or gave some back.
    Heap(HeapRecord<'a>),
    /// Something went wrong.
    Fault(FaultRecord<'a>),
    /// A step on the way from a lost worker to a new one.
    Takeover(TakeoverRecord),
    /// What a collective does; the submission itself is an event too.
    Collective(CollectiveRecord<'a>),
    /// Events that are missing.
    Dropped(DroppedRecord),
    /// The last runtime that is recorded has ended.
    End(EndRecord),
    /// A word of the command that runs the program again.
    Command(CommandRecord<'a>),
    /// A stream still had work from before the recording.
    Earlier(EarlierRecord),
    /// The checks of a device found a mistake.
    Finding(FindingRecord<'a>),
    /// A worker process has a device from here on.
    Worker(WorkerRecord<'a>),
    /// A line of what is known of the loss of a device.
    PostMortem(PostMortemRecord<'a>),
}

impl<'a> TraceEvent<'a> {
    /// When it happened, or was over, for those that have a time; that of the host for a submission.
    pub(crate) fn time_ns(&self) -> Option<u64> {
        match self {
            Self::Submission(work) => Some(work.host.end_ns),
            Self::StreamWait(wait) => Some(wait.time_ns),
            Self::HostWait(wait) => Some(wait.span.end_ns),
            Self::Allocation(block) => Some(block.time_ns),
            Self::Free(block) => Some(block.time_ns),
            Self::Heap(heap) => Some(heap.time_ns),
            Self::Fault(fault) => Some(fault.time_ns),
            Self::Finding(finding) => Some(finding.time_ns),
            Self::Takeover(step) => Some(step.span.end_ns),
            Self::End(end) => Some(end.time_ns),
            Self::Worker(worker) => Some(worker.time_ns),
            Self::PostMortem(line) => Some(line.time_ns),
            Self::Start(_)
            | Self::Device(_)
            | Self::Stream(_)
            | Self::Collective(_)
            | Self::Dropped(_)
            | Self::Command(_)
            | Self::Earlier(_) => None,
        }
    }

    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        let mut tag = |tag: u8| to.byte(tag);
        match self {
            Self::Start(record) => (tag(1), record.encode(to)).1,
            Self::Device(record) => (tag(2), record.encode(to)).1,
            Self::Stream(record) => (tag(3), record.encode(to)).1,
            Self::Submission(record) => (tag(4), record.encode(to)).1,
            Self::StreamWait(record) => (tag(5), record.encode(to)).1,
            Self::HostWait(record) => (tag(6), record.encode(to)).1,
            Self::Allocation(record) => (tag(7), record.encode(to)).1,
            Self::Free(record) => (tag(8), record.encode(to)).1,
            Self::Heap(record) => (tag(9), record.encode(to)).1,
            Self::Fault(record) => (tag(10), record.encode(to)).1,
            Self::Takeover(record) => (tag(11), record.encode(to)).1,
            Self::Collective(record) => (tag(12), record.encode(to)).1,
            Self::Dropped(record) => (tag(13), record.encode(to)).1,
            Self::End(record) => (tag(14), record.encode(to)).1,
            Self::Command(record) => (tag(15), record.encode(to)).1,
            Self::Earlier(record) => (tag(16), record.encode(to)).1,
            Self::Finding(record) => (tag(17), record.encode(to)).1,
            Self::Worker(record) => (tag(18), record.encode(to)).1,
            Self::PostMortem(record) => (tag(19), record.encode(to)).1,
        }
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        Ok(match from.byte()? {
            1 => Self::Start(StartRecord::decode(from)?),
            2 => Self::Device(DeviceRecord::decode(from)?),
            3 => Self::Stream(StreamRecord::decode(from)?),
            4 => Self::Submission(SubmissionRecord::decode(from)?),
            5 => Self::StreamWait(StreamWaitRecord::decode(from)?),
            6 => Self::HostWait(HostWaitRecord::decode(from)?),
            7 => Self::Allocation(AllocationRecord::decode(from)?),
            8 => Self::Free(FreeRecord::decode(from)?),
            9 => Self::Heap(HeapRecord::decode(from)?),
            10 => Self::Fault(FaultRecord::decode(from)?),
            11 => Self::Takeover(TakeoverRecord::decode(from)?),
            12 => Self::Collective(CollectiveRecord::decode(from)?),
            13 => Self::Dropped(DroppedRecord::decode(from)?),
            14 => Self::End(EndRecord::decode(from)?),
            15 => Self::Command(CommandRecord::decode(from)?),
            16 => Self::Earlier(EarlierRecord::decode(from)?),
            17 => Self::Finding(FindingRecord::decode(from)?),
            18 => Self::Worker(WorkerRecord::decode(from)?),
            19 => Self::PostMortem(PostMortemRecord::decode(from)?),
            _ => return Err(Malformed("an event of an unknown kind")),
        })
    }
}
