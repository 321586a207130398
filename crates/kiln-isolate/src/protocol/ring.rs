//! A queue of messages in shared memory, with one writer and one reader.
//!
//! Each end counts all bytes it has moved; the difference is what the ring holds. A message is a length and its bytes, padded to eight,
//! and may wrap at the end of the ring. An end keeps its count in private memory and publishes it. It checks the published count of the
//! other end against what is possible, so a wrong count is a protocol violation and no access leaves the ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::SharedBytes;

use super::protocol_error::ProtocolViolation;

/// Bytes of the length before each message.
const HEADER_BYTES: u64 = 8;

/// Where a ring is in the shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLayout {
    /// The word the writer publishes its count in.
    pub(crate) written: usize,
    /// The word the reader publishes its count in.
    pub(crate) read: usize,
    /// The first byte.
    pub(crate) start: usize,
    /// How many bytes it holds, a power of two.
    pub(crate) capacity: u64,
}

impl RingLayout {
    /// The longest message that is sent through it; the ring holds a few of that length.
    pub(crate) const fn longest(self) -> usize {
        (self.capacity / 4) as usize
    }

    fn offset(self, count: u64) -> usize {
        self.start + (count & (self.capacity - 1)) as usize
    }

    /// The one or two pieces of a range of the ring: the offset in memory, and the range of the message.
    fn pieces(self, count: u64, len: usize) -> [(usize, std::ops::Range<usize>); 2] {
        let offset = self.offset(count);
        let until_end = (self.start + self.capacity as usize - offset).min(len);
        [(offset, 0..until_end), (self.start, until_end..len)]
    }
}

/// The end that writes.
pub(crate) struct RingWriter {
    bytes: Arc<SharedBytes>,
    layout: RingLayout,
    written: u64,
    /// The reader's count when it was last read.
    read: u64,
}

impl RingWriter {
    pub(crate) fn new(bytes: Arc<SharedBytes>, layout: RingLayout) -> Self {
        Self { bytes, layout, written: 0, read: 0 }
    }

    /// Adds a message; returns false if there is no room.
    pub(crate) fn push(&mut self, message: &[u8]) -> Result<bool, ProtocolViolation> {
        let length = u32::try_from(message.len()).ok().filter(|_| message.len() <= self.layout.longest());
        let Some(length) = length else {
            return Err(ProtocolViolation::new("a message longer than the ring allows"));
        };
        let needed = HEADER_BYTES + (message.len() as u64).next_multiple_of(8);
        if !self.has_room(needed)? {
            return Ok(false);
        }
        let header = u64::from(length).to_le_bytes();
        let mut fits = self.bytes.write(self.layout.offset(self.written), &header);
        for (offset, range) in self.layout.pieces(self.written + HEADER_BYTES, message.len()) {
            fits &= message.get(range).is_some_and(|piece| self.bytes.write(offset, piece));
        }
        if !fits {
            return Err(ProtocolViolation::new("a ring outside of the shared memory"));
        }
        self.written += needed;
        word(&self.bytes, self.layout.written).store(self.written, Ordering::Release);
        Ok(true)
    }

    /// Whether that many bytes fit.
    fn has_room(&mut self, needed: u64) -> Result<bool, ProtocolViolation> {
        if self.written + needed - self.read <= self.layout.capacity {
            return Ok(true);
        }
        let read = word(&self.bytes, self.layout.read).load(Ordering::Acquire);
        if read < self.read || read > self.written {
            return Err(ProtocolViolation::new("a reader whose count is beyond what was written"));
        }
        self.read = read;
        Ok(self.written + needed - read <= self.layout.capacity)
    }

    /// Whether the reader has read everything.
    pub(crate) fn is_drained(&self) -> bool {
        word(&self.bytes, self.layout.read).load(Ordering::Acquire) == self.written
    }
}

/// The end that reads.
pub(crate) struct RingReader {
    bytes: Arc<SharedBytes>,
    layout: RingLayout,
    read: u64,
}

impl RingReader {
    pub(crate) fn new(bytes: Arc<SharedBytes>, layout: RingLayout) -> Self {
        Self { bytes, layout, read: 0 }
    }

    /// Whether there is a message.
    pub(crate) fn is_ready(&self) -> bool {
        word(&self.bytes, self.layout.written).load(Ordering::Acquire) != self.read
    }

    /// Moves the next message into the buffer; returns false if there is none.
    pub(crate) fn pop(&mut self, into: &mut Vec<u8>) -> Result<bool, ProtocolViolation> {
        let written = word(&self.bytes, self.layout.written).load(Ordering::Acquire);
        let there = written.wrapping_sub(self.read);
        if there == 0 {
            return Ok(false);
        }
        if there > self.layout.capacity || there < HEADER_BYTES || !written.is_multiple_of(8) {
            return Err(ProtocolViolation::new("a writer whose count is impossible"));
        }
        let mut header = [0; HEADER_BYTES as usize];
        if !self.bytes.read(self.layout.offset(self.read), &mut header) {
            return Err(ProtocolViolation::new("a ring outside of the shared memory"));
        }
        let length = u64::from_le_bytes(header);
        if length > self.layout.longest() as u64 || HEADER_BYTES + length.next_multiple_of(8) > there {
            return Err(ProtocolViolation::new("a message longer than what was written"));
        }
        into.clear();
        into.resize(length as usize, 0);
        for (offset, range) in self.layout.pieces(self.read + HEADER_BYTES, into.len()) {
            if !into.get_mut(range).is_some_and(|piece| self.bytes.read(offset, piece)) {
                return Err(ProtocolViolation::new("a ring outside of the shared memory"));
            }
        }
        self.read += HEADER_BYTES + length.next_multiple_of(8);
        word(&self.bytes, self.layout.read).store(self.read, Ordering::Release);
        Ok(true)
    }
}

/// A word of the shared memory; for an offset outside of it, a word that only this process sees.
pub(crate) fn word(bytes: &SharedBytes, offset: usize) -> &AtomicU64 {
    static OUTSIDE: AtomicU64 = AtomicU64::new(0);
    bytes.atomic_u64(offset).unwrap_or(&OUTSIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: RingLayout = RingLayout { written: 0, read: 8, start: 64, capacity: 256 };

    fn ends() -> (RingWriter, RingReader, Arc<SharedBytes>) {
        let bytes = Arc::new(SharedBytes::zeroed(64 + 256));
        (RingWriter::new(bytes.clone(), LAYOUT), RingReader::new(bytes.clone(), LAYOUT), bytes)
    }

    #[test]
    fn messages_of_every_length_are_read_as_they_were_written() {
        let (mut writer, mut reader, _) = ends();
        let mut buffer = Vec::new();
        let turns = if cfg!(miri) { 140 } else { 1000 };
        for turn in 0..turns {
            let message: Vec<u8> = (0..turn % 65).map(|at| (turn + at) as u8).collect();
            assert!(writer.push(&message).unwrap());
            assert!(reader.pop(&mut buffer).unwrap());
            assert_eq!(buffer, message);
        }
        assert!(!reader.pop(&mut buffer).unwrap() && writer.is_drained());
    }

    #[test]
    fn a_full_ring_takes_no_more_until_something_is_read() {
        let (mut writer, mut reader, _) = ends();
        let mut sent = 0;
        while writer.push(&[sent; 24]).unwrap() {
            sent += 1;
        }
        assert_eq!(sent, 8);
        let mut buffer = Vec::new();
        assert!(reader.pop(&mut buffer).unwrap() && writer.push(&[sent; 24]).unwrap());
        for expected in 1..=sent {
            assert!(reader.pop(&mut buffer).unwrap());
            assert_eq!(buffer, [expected; 24]);
        }
        assert!(writer.push(&[0; 65]).is_err());
    }

    #[test]
    fn impossible_counts_are_refused() {
        let mut buffer = Vec::new();
        for wrong in [1, 4, 257, 264, u64::MAX, u64::MAX - 7] {
            let (_, mut reader, bytes) = ends();
            word(&bytes, LAYOUT.written).store(wrong, Ordering::Release);
            assert!(reader.pop(&mut buffer).is_err(), "{wrong}");
        }
        for length in [9u64, 65, u64::from(u32::MAX), u64::MAX] {
            let (_, mut reader, bytes) = ends();
            assert!(bytes.write(LAYOUT.start, &length.to_le_bytes()));
            word(&bytes, LAYOUT.written).store(16, Ordering::Release);
            assert!(reader.pop(&mut buffer).is_err(), "{length}");
        }
        for wrong in [u64::MAX, 1 << 40] {
            let (mut writer, _, bytes) = ends();
            word(&bytes, LAYOUT.read).store(wrong, Ordering::Release);
            let found = (0..20).any(|_| writer.push(&[1; 24]).is_err());
            assert!(found, "{wrong}");
        }
    }
}
