//! What the heap takes from the device and gives back.

use super::TraceLine;
use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// What the heap did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum HeapChange {
    /// It took pages from the device.
    #[default]
    Grew,
    /// It gave pages back.
    Shrank,
    /// It mapped free pages to another address, to make one large range.
    Remapped,
    /// An allocation was refused, because there was too little memory.
    OutOfMemory,
    /// An allocation was refused that is larger than any block can be.
    TooLarge,
    /// The driver's pool took memory from the device: more of it was in use at once than before, or trimming it gave back more than that.
    PoolGrew,
    /// The driver's pool gave back what it kept.
    PoolTrimmed,
}

/// The heap of a device changed, or refused an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapRecord<'a> {
    /// The device whose memory it is.
    pub device: u32,
    /// What it did.
    pub change: HeapChange,
    /// How many bytes it did that with; those that were asked for, where they were refused.
    pub bytes: u64,
    /// Bytes that it holds since; of a driver's pool, which alone knows that, what was in use at once or given back by trimming.
    pub held_bytes: u64,
    /// Bytes of these that are free, where an allocation was refused.
    pub free_bytes: u64,
    /// The largest free piece, where an allocation was refused.
    pub largest_free_bytes: u64,
    /// The limit that was reached, where it was a limit and not the device; 0 for none.
    pub limit_bytes: u64,
    /// The tag of the allocation for which it changed, or that was refused; empty if none is known.
    pub tag: &'a str,
    /// The line that asked for the memory, if that is known.
    pub line: Option<TraceLine<'a>>,
    /// When.
    pub time_ns: u64,
}

const CHANGES: [HeapChange; 7] = [
    HeapChange::Grew,
    HeapChange::Shrank,
    HeapChange::Remapped,
    HeapChange::OutOfMemory,
    HeapChange::TooLarge,
    HeapChange::PoolGrew,
    HeapChange::PoolTrimmed,
];

impl HeapChange {
    /// Whether an allocation was refused.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::OutOfMemory | Self::TooLarge)
    }

    /// Whether the driver's pool did it, and not a heap.
    pub fn is_of_pool(self) -> bool {
        matches!(self, Self::PoolGrew | Self::PoolTrimmed)
    }

    /// What happened, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Grew => "the heap grew",
            Self::Shrank => "the heap gave memory back",
            Self::Remapped => "the heap remapped memory",
            Self::OutOfMemory => "out of memory",
            Self::TooLarge => "larger than any block",
            Self::PoolGrew => "the driver's pool grew",
            Self::PoolTrimmed => "the driver's pool was trimmed",
        }
    }
}

impl<'a> HeapRecord<'a> {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.byte(CHANGES.iter().position(|change| *change == self.change).unwrap_or_default() as u8);
        to.number(self.bytes);
        to.number(self.held_bytes);
        if self.change.is_refusal() {
            to.number(self.free_bytes);
            to.number(self.largest_free_bytes);
            to.number(self.limit_bytes);
        }
        to.name(self.tag);
        TraceLine::encode(self.line, to);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'a>) -> Result<Self, Malformed> {
        let device = from.small()?;
        let unknown = Malformed("an unknown change of the heap");
        let change = *CHANGES.get(usize::from(from.byte()?)).ok_or(unknown)?;
        let (bytes, held_bytes) = (from.number()?, from.number()?);
        let mut record = Self { device, change, bytes, held_bytes, ..Self::default() };
        if change.is_refusal() {
            record.free_bytes = from.number()?;
            record.largest_free_bytes = from.number()?;
            record.limit_bytes = from.number()?;
        }
        (record.tag, record.line) = (from.name()?, TraceLine::decode(from)?);
        record.time_ns = from.time()?;
        Ok(record)
    }
}
