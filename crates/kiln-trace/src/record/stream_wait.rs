//! Work that waits on the device for other work.

use super::{TraceLine, TraceStamp};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// Why work has to wait for other work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum WaitReason {
    /// It reads what the other writes.
    #[default]
    ReadAfterWrite,
    /// It overwrites what the other writes.
    WriteAfterWrite,
    /// It overwrites what the other reads.
    WriteAfterRead,
    /// It uses memory that was allocated on another stream behind the other, which need not have used it.
    Allocation,
    /// The program asked for it.
    Asked,
    /// Not known.
    Unknown,
}

/// The block of memory that a wait is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AwaitedBlock<'a> {
    /// Its number.
    pub block: u64,
    /// Its tag; empty if it has none.
    pub tag: &'a str,
}

/// A submission that waits for another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamWaitRecord<'a> {
    /// What waits.
    pub waiter: TraceStamp,
    /// What it has to come after.
    pub writer: TraceStamp,
    /// The last submission of the writer's stream that the event in between covers. If it is later than the writer, the waiter
    /// also waits for work that it has nothing to do with.
    pub covers: u64,
    /// Why.
    pub reason: WaitReason,
    /// The memory it is about, if that is known.
    pub block: Option<AwaitedBlock<'a>>,
    /// Which line asked for it, where the program did ([`WaitReason::Asked`]).
    pub line: Option<TraceLine<'a>>,
    /// When the host queued the wait.
    pub time_ns: u64,
}

const REASONS: [WaitReason; 6] = [
    WaitReason::ReadAfterWrite,
    WaitReason::WriteAfterWrite,
    WaitReason::WriteAfterRead,
    WaitReason::Allocation,
    WaitReason::Asked,
    WaitReason::Unknown,
];

impl WaitReason {
    /// The reason with that number, in the order of their definition.
    pub(crate) fn numbered(number: u8) -> Option<Self> {
        REASONS.get(usize::from(number)).copied()
    }
}

const HAS_BLOCK: u8 = 0x10;
const HAS_LINE: u8 = 0x20;

impl<'a> StreamWaitRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        let reason = self.reason as u8;
        let block = if self.block.is_some() { HAS_BLOCK } else { 0 };
        let line = if self.line.is_some() { HAS_LINE } else { 0 };
        to.byte(reason | block | line);
        self.waiter.encode(to);
        self.writer.encode(to);
        to.number(self.covers.saturating_sub(self.writer.number));
        if let Some(block) = self.block {
            to.number(block.block);
            to.name(block.tag);
        }
        if self.line.is_some() {
            TraceLine::encode(self.line, to);
        }
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let flags = from.byte()?;
        let unknown = Malformed("a wait for an unknown reason");
        if flags & !(HAS_BLOCK | HAS_LINE | 0x0f) != 0 {
            return Err(unknown);
        }
        let reason = WaitReason::numbered(flags & 0x0f).ok_or(unknown)?;
        let (waiter, writer) = (TraceStamp::decode(from)?, TraceStamp::decode(from)?);
        let covers = writer.number.saturating_add(from.number()?);
        let block = match flags & HAS_BLOCK {
            0 => None,
            _ => Some(AwaitedBlock { block: from.number()?, tag: from.name()? }),
        };
        let line = if flags & HAS_LINE != 0 { TraceLine::decode(from)? } else { None };
        Ok(Self { waiter, writer, covers, reason, block, line, time_ns: from.time()? })
    }
}
