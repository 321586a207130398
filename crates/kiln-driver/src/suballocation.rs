//! Part of existing memory that a resource hands out as a block.

use std::fmt;

use crate::command::DevicePlace;
use crate::handle::StreamId;

/// Part of existing memory that a resource hands out as a block, for a device that checks accesses.
///
/// The device cannot see where the blocks of a heap begin and end: the pages below them stay mapped. A resource says it with
/// [`MemoryRequest::Part`](crate::MemoryRequest::Part) when it hands out a block, and by freeing the part when it takes the block back. The part has a
/// handle like other memory, and a command that names memory by this handle uses the block itself.
///
/// Parts may lie inside of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryPart {
    /// Where it begins.
    pub place: DevicePlace,
    /// At least 1.
    pub bytes: u64,
    /// The stream that the block was asked for, in messages. Work that was submitted before this call, to any stream, may still use the bytes
    /// for what they were before.
    pub stream: Option<StreamId>,
    /// What begins.
    pub kind: PartKind,
    /// What it is for, in messages.
    pub label: PartLabel,
}

/// What a [`MemoryPart`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PartKind {
    /// A block of which nothing is known, as of new memory: to read a byte before it is written is a mistake.
    NewBlock,
    /// A block whose bytes hold what was written before.
    KeptBlock,
    /// Memory that a resource itself fills or looks at by this handle, also after its owner has freed it. No block begins here, and none ends when
    /// the handle is freed.
    Inspection,
}

/// What a [`MemoryPart`] is for: a short text that can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartLabel {
    bytes: [u8; Self::LIMIT_BYTES],
    len: u8,
}

impl PartLabel {
    /// What is longer is cut.
    pub const LIMIT_BYTES: usize = 47;

    /// The label with this text, as far as it fits.
    pub fn new(text: &str) -> Self {
        let mut len = text.len().min(Self::LIMIT_BYTES);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; Self::LIMIT_BYTES];
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len: len as u8 }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        // It was cut between characters.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Display for PartLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for PartLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_cut_between_characters() {
        assert_eq!(PartLabel::new("weights").as_str(), "weights");
        assert_eq!(PartLabel::new("").as_str(), "");
        let long = "é".repeat(40);
        assert_eq!(PartLabel::new(&long).as_str(), "é".repeat(23));
    }
}
