//! A block: a head, the names, the events.

use std::ops::Range;

use super::checksum::checksum;
use super::field_decoder::{FieldDecoder, Malformed};

/// The most bytes that a block has behind its head.
pub const MAX_BLOCK_BYTES: u32 = 1 << 20;

/// How many bytes a head has.
pub(crate) const HEAD_BYTES: usize = 12;

/// What stands before the contents of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockHead {
    /// The length of the contents.
    pub(crate) bytes: u32,
    sum: u32,
}

impl BlockHead {
    /// The head of a block with these contents; the second piece follows the first.
    pub(crate) fn of(first: &[u8], second: &[u8]) -> Self {
        let bytes = u32::try_from(first.len() + second.len()).unwrap_or(u32::MAX);
        Self { bytes, sum: checksum(&[first, second]) }
    }

    /// The bytes to write.
    pub(crate) fn bytes(self) -> [u8; HEAD_BYTES] {
        let (length, sum) = (self.bytes.to_le_bytes(), self.sum.to_le_bytes());
        let own = checksum(&[&length, &sum]).to_le_bytes();
        let mut bytes = [0; HEAD_BYTES];
        for (to, from) in bytes.iter_mut().zip(length.iter().chain(&sum).chain(&own)) {
            *to = *from;
        }
        bytes
    }

    /// Reads a head; none if it is damaged.
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let (numbers, own) = bytes.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
        let head = Self { bytes: number(numbers.get(..4)?)?, sum: number(numbers.get(4..)?)? };
        (number(own)? == checksum(&[numbers]) && head.bytes <= MAX_BLOCK_BYTES).then_some(head)
    }

    /// As [`read`](Self::read) for bytes that may be anything; none as well for a block without contents, which is never written.
    pub(crate) fn of_some_contents(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let length = u32::from_le_bytes(*bytes.first_chunk()?);
        // Most other bytes are told apart by this, and need no checksum.
        if (1..=MAX_BLOCK_BYTES).contains(&length) { Self::read(bytes) } else { None }
    }

    /// Whether these are the contents that it stands before.
    pub(crate) fn fits(self, contents: &[u8]) -> bool {
        contents.len() == self.bytes as usize && checksum(&[contents]) == self.sum
    }
}

/// Where the names of a block lie in its contents.
pub(crate) type Names = Vec<Range<usize>>;

/// Reads the names of a block, and returns where its events begin.
pub(crate) fn split_names(contents: &[u8], names: &mut Names) -> Result<usize, Malformed> {
    names.clear();
    let mut from = FieldDecoder::new(contents, contents, &[], 0);
    let count = from.number()?;
    // A name takes at least one byte, so that a wrong count ends soon.
    for _ in 0..count {
        let length = usize::try_from(from.number()?).map_err(|_| Malformed("the length of a name"))?;
        let start = from.at();
        let end = start.checked_add(length).ok_or(Malformed("the length of a name"))?;
        let text = contents.get(start..end).ok_or(Malformed("a name that is cut off"))?;
        std::str::from_utf8(text).map_err(|_| Malformed("a name that is no text"))?;
        from.skip(length)?;
        names.push(start..end);
    }
    Ok(from.at())
}
