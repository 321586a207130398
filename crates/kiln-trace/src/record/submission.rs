//! Work that was submitted to a stream.

use super::{TimeSpan, TraceLine, TraceStamp};
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// What kind of work a submission is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum SubmissionKind {
    /// The launch of a kernel.
    #[default]
    Kernel,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// The launch of a graph.
    Graph,
    /// A call of a library.
    Library,
    /// A collective between devices.
    Collective,
    /// Work of another library, which kiln knows by what it uses.
    Foreign,
    /// Anything else.
    Other,
}

/// The shape of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaunchSize {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// Work that was submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubmissionRecord<'a> {
    /// The stream and the number.
    pub stamp: TraceStamp,
    /// What kind of work it is.
    pub kind: SubmissionKind,
    /// The kernel, the operation, or the kind in words.
    pub name: &'a str,
    /// Which line submitted it.
    pub line: Option<TraceLine<'a>>,
    /// The shape of a launch.
    pub size: Option<LaunchSize>,
    /// Bytes that are moved or written; 0 where that is not known.
    pub bytes: u64,
    /// When the host submitted it: from the call to its return.
    pub host: TimeSpan,
    /// When the device ran it, if that was measured.
    pub device: Option<TimeSpan>,
}

const KINDS: [SubmissionKind; 8] = [
    SubmissionKind::Kernel,
    SubmissionKind::Copy,
    SubmissionKind::Fill,
    SubmissionKind::Graph,
    SubmissionKind::Library,
    SubmissionKind::Collective,
    SubmissionKind::Foreign,
    SubmissionKind::Other,
];

impl SubmissionKind {
    /// The kind with that number, in the order of their definition.
    pub(crate) fn numbered(number: u8) -> Option<Self> {
        KINDS.get(usize::from(number)).copied()
    }
}

const HAS_SIZE: u8 = 0x10;
const HAS_DEVICE: u8 = 0x20;

impl<'a> SubmissionRecord<'a> {
    /// When it ran, or else when it was submitted.
    pub fn span(&self) -> TimeSpan {
        self.device.unwrap_or(self.host)
    }

    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        let kind = self.kind as u8;
        let size = if self.size.is_some() { HAS_SIZE } else { 0 };
        let device = if self.device.is_some() { HAS_DEVICE } else { 0 };
        to.byte(kind | size | device);
        self.stamp.encode(to);
        to.name(self.name);
        TraceLine::encode(self.line, to);
        if let Some(LaunchSize { grid, block, shared_bytes }) = self.size {
            grid.iter().chain(&block).for_each(|number| to.number((*number).into()));
            to.number(shared_bytes.into());
        }
        to.number(self.bytes);
        self.host.encode(to);
        if let Some(device) = self.device {
            device.encode(to);
        }
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let flags = from.byte()?;
        let unknown = Malformed("a submission of an unknown kind");
        if flags & !(HAS_SIZE | HAS_DEVICE | 0x0f) != 0 {
            return Err(unknown);
        }
        let kind = SubmissionKind::numbered(flags & 0x0f).ok_or(unknown)?;
        let (stamp, name, line) = (TraceStamp::decode(from)?, from.name()?, TraceLine::decode(from)?);
        let size = if flags & HAS_SIZE != 0 { Some(LaunchSize::decode(from)?) } else { None };
        let (bytes, host) = (from.number()?, TimeSpan::decode(from)?);
        let device = if flags & HAS_DEVICE != 0 { Some(TimeSpan::decode(from)?) } else { None };
        Ok(Self { stamp, kind, name, line, size, bytes, host, device })
    }
}

impl LaunchSize {
    fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        let mut three = || Ok([from.small()?, from.small()?, from.small()?]);
        let (grid, block) = (three()?, three()?);
        Ok(Self { grid, block, shared_bytes: from.small()? })
    }
}
