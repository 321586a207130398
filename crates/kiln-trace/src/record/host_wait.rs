//! A thread of the program that waited for a device.

use super::{TimeSpan, TraceLine, TraceStamp};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// What the thread had asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum HostWaitCause {
    /// Everything submitted so far.
    #[default]
    Synchronize,
    /// One submission.
    Ticket,
    /// Data on the host.
    Download,
    /// Memory that is still in use.
    Memory,
    /// Room in a queue, or an event that is free.
    Queue,
    /// Something else.
    Other,
    /// The other ranks of a collective.
    Collective,
}

/// A thread that waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostWaitRecord<'a> {
    /// The device that was waited for.
    pub device: u32,
    /// The thread, by a number of the recording.
    pub thread: u32,
    /// What it had asked for.
    pub cause: HostWaitCause,
    /// The last submission that it waited for, if there is one.
    pub awaited: Option<TraceStamp>,
    /// Which line waited.
    pub line: Option<TraceLine<'a>>,
    /// From when to when.
    pub span: TimeSpan,
}

const CAUSES: [HostWaitCause; 7] = [
    HostWaitCause::Synchronize,
    HostWaitCause::Ticket,
    HostWaitCause::Download,
    HostWaitCause::Memory,
    HostWaitCause::Queue,
    HostWaitCause::Other,
    HostWaitCause::Collective,
];

const HAS_STAMP: u8 = 0x10;

impl HostWaitCause {
    /// What is done, in one word or two.
    pub fn words(self) -> &'static str {
        match self {
            Self::Synchronize => "synchronize",
            Self::Ticket => "wait for a ticket",
            Self::Download => "download",
            Self::Memory => "wait for memory",
            Self::Queue => "wait for the queue",
            Self::Other => "wait",
            Self::Collective => "wait for other ranks",
        }
    }
}

impl<'a> HostWaitRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        let cause = CAUSES.iter().position(|cause| *cause == self.cause).unwrap_or_default() as u8;
        to.byte(cause | if self.awaited.is_some() { HAS_STAMP } else { 0 });
        to.number(self.device.into());
        to.number(self.thread.into());
        if let Some(awaited) = self.awaited {
            awaited.encode(to);
        }
        TraceLine::encode(self.line, to);
        self.span.encode(to);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let flags = from.byte()?;
        let unknown = Malformed("a wait for an unknown cause");
        if flags & !(HAS_STAMP | 0x0f) != 0 {
            return Err(unknown);
        }
        let cause = *CAUSES.get(usize::from(flags & 0x0f)).ok_or(unknown)?;
        let (device, thread) = (from.small()?, from.small()?);
        let awaited = if flags & HAS_STAMP == 0 { None } else { Some(TraceStamp::decode(from)?) };
        let line = TraceLine::decode(from)?;
        Ok(Self { device, thread, cause, awaited, line, span: TimeSpan::decode(from)? })
    }
}
