//! What the heap takes from the device and gives back.

use crate::format::{FieldDecoder, FieldEncoder, Malformed};

/// What the heap did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeapChange {
    /// It took pages from the device.
    #[default]
    Grew,
    /// It gave pages back.
    Shrank,
    /// It mapped free pages to another address, to make one large range.
    Remapped,
    /// An allocation was refused.
    OutOfMemory,
}

/// The heap of a device changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapRecord {
    /// The device whose memory it is.
    pub device: u32,
    /// What it did.
    pub change: HeapChange,
    /// How many bytes it did that with.
    pub bytes: u64,
    /// Bytes that it holds since.
    pub held_bytes: u64,
    /// When.
    pub time_ns: u64,
}

const CHANGES: [HeapChange; 4] =
    [HeapChange::Grew, HeapChange::Shrank, HeapChange::Remapped, HeapChange::OutOfMemory];

impl HeapRecord {
    pub(crate) fn encode(&self, to: &mut FieldEncoder) {
        to.number(self.device.into());
        to.byte(CHANGES.iter().position(|change| *change == self.change).unwrap_or_default() as u8);
        to.number(self.bytes);
        to.number(self.held_bytes);
        to.time(self.time_ns);
    }

    pub(crate) fn decode(from: &mut FieldDecoder<'_>) -> Result<Self, Malformed> {
        let device = from.small()?;
        let unknown = Malformed("an unknown change of the heap");
        let change = *CHANGES.get(usize::from(from.byte()?)).ok_or(unknown)?;
        let (bytes, held_bytes) = (from.number()?, from.number()?);
        Ok(Self { device, change, bytes, held_bytes, time_ns: from.time()? })
    }
}
