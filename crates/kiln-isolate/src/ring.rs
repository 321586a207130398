//! A queue of messages in shared memory, with one writer and one reader.
//!
//! Both ends count bytes that ever went through; the difference is what lies in between. Each message is a length and
//! its bytes, padded to eight, and may be cut in two by the end of the ring. An end keeps its own count to itself
//! and only publishes it, and believes the other's only as far as it can be true: a peer that lies about it is found
//! out, and nothing outside of the ring is ever touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::SharedBytes;

use crate::violation::Violation;

/// In front of each message.
const HEADER_BYTES: u64 = 8;

/// Where a ring lies in the shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPlace {
    /// The word the writer publishes its count in.
    pub(crate) written: usize,
    /// The word the reader publishes its count in.
    pub(crate) read: usize,
    /// The first byte.
    pub(crate) start: usize,
    /// A power of two.
    pub(crate) capacity: u64,
}

impl RingPlace {
    /// The longest message that is sent through it; a few of that length fit.
    pub(crate) const fn longest(self) -> usize {
        (self.capacity / 4) as usize
    }

    fn offset(self, count: u64) -> usize {
        self.start + (count & (self.capacity - 1)) as usize
    }

    /// Runs over the one or two pieces of a range of the ring: offset in memory, and range of the message.
    fn pieces(self, count: u64, len: usize) -> [(usize, std::ops::Range<usize>); 2] {
        let offset = self.offset(count);
        let until_end = (self.start + self.capacity as usize - offset).min(len);
        [(offset, 0..until_end), (self.start, until_end..len)]
    }
}

/// The end that writes.
pub(crate) struct RingWriter {
    bytes: Arc<SharedBytes>,
    place: RingPlace,
    written: u64,
    /// What the reader had read when it was last asked.
    read: u64,
}

impl RingWriter {
    pub(crate) fn new(bytes: Arc<SharedBytes>, place: RingPlace) -> Self {
        Self { bytes, place, written: 0, read: 0 }
    }

    /// Puts a message in; `false` if there is no room now.
    pub(crate) fn push(&mut self, message: &[u8]) -> Result<bool, Violation> {
        let length = u32::try_from(message.len()).ok().filter(|_| message.len() <= self.place.longest());
        let Some(length) = length else { return Err(Violation::new("a message longer than the ring takes")) };
        let needed = HEADER_BYTES + (message.len() as u64).next_multiple_of(8);
        if !self.has_room(needed)? {
            return Ok(false);
        }
        let header = u64::from(length).to_le_bytes();
        let mut fits = self.bytes.write(self.place.offset(self.written), &header);
        for (offset, range) in self.place.pieces(self.written + HEADER_BYTES, message.len()) {
            fits &= message.get(range).is_some_and(|piece| self.bytes.write(offset, piece));
        }
        if !fits {
            return Err(Violation::new("a ring outside of the shared memory"));
        }
        self.written += needed;
        word(&self.bytes, self.place.written).store(self.written, Ordering::Release);
        Ok(true)
    }

    /// Whether so many bytes fit, as far as the reader has told.
    fn has_room(&mut self, needed: u64) -> Result<bool, Violation> {
        if self.written + needed - self.read <= self.place.capacity {
            return Ok(true);
        }
        let read = word(&self.bytes, self.place.read).load(Ordering::Acquire);
        if read < self.read || read > self.written {
            return Err(Violation::new("a reader that read what was not written"));
        }
        self.read = read;
        Ok(self.written + needed - read <= self.place.capacity)
    }

    /// Whether everything was read.
    pub(crate) fn is_drained(&self) -> bool {
        word(&self.bytes, self.place.read).load(Ordering::Acquire) == self.written
    }
}

/// The end that reads.
pub(crate) struct RingReader {
    bytes: Arc<SharedBytes>,
    place: RingPlace,
    read: u64,
}

impl RingReader {
    pub(crate) fn new(bytes: Arc<SharedBytes>, place: RingPlace) -> Self {
        Self { bytes, place, read: 0 }
    }

    /// Whether a message is there.
    pub(crate) fn is_ready(&self) -> bool {
        word(&self.bytes, self.place.written).load(Ordering::Acquire) != self.read
    }

    /// Takes the next message out, into the buffer; `false` if there is none.
    pub(crate) fn pop(&mut self, into: &mut Vec<u8>) -> Result<bool, Violation> {
        let written = word(&self.bytes, self.place.written).load(Ordering::Acquire);
        let there = written.wrapping_sub(self.read);
        if there == 0 {
            return Ok(false);
        }
        if there > self.place.capacity || there < HEADER_BYTES || !written.is_multiple_of(8) {
            return Err(Violation::new("a writer whose count cannot be true"));
        }
        let mut header = [0; HEADER_BYTES as usize];
        if !self.bytes.read(self.place.offset(self.read), &mut header) {
            return Err(Violation::new("a ring outside of the shared memory"));
        }
        let length = u64::from_le_bytes(header);
        if length > self.place.longest() as u64 || HEADER_BYTES + length.next_multiple_of(8) > there {
            return Err(Violation::new("a message longer than what was written"));
        }
        into.clear();
        into.resize(length as usize, 0);
        for (offset, range) in self.place.pieces(self.read + HEADER_BYTES, into.len()) {
            if !into.get_mut(range).is_some_and(|piece| self.bytes.read(offset, piece)) {
                return Err(Violation::new("a ring outside of the shared memory"));
            }
        }
        self.read += HEADER_BYTES + length.next_multiple_of(8);
        word(&self.bytes, self.place.read).store(self.read, Ordering::Release);
        Ok(true)
    }
}

/// A word of the shared memory; one that lies outside is a word nobody else sees.
pub(crate) fn word(bytes: &SharedBytes, offset: usize) -> &AtomicU64 {
    static NOWHERE: AtomicU64 = AtomicU64::new(0);
    bytes.atomic_u64(offset).unwrap_or(&NOWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RingPlace = RingPlace { written: 0, read: 8, start: 64, capacity: 256 };

    fn ends() -> (RingWriter, RingReader, Arc<SharedBytes>) {
        let bytes = Arc::new(SharedBytes::zeroed(64 + 256));
        (RingWriter::new(bytes.clone(), PLACE), RingReader::new(bytes.clone(), PLACE), bytes)
    }

    #[test]
    fn messages_of_every_length_come_out_as_they_went_in() {
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
    fn counts_that_cannot_be_true_are_found_out() {
        let mut buffer = Vec::new();
        for lie in [1, 4, 257, 264, u64::MAX, u64::MAX - 7] {
            let (_, mut reader, bytes) = ends();
            word(&bytes, PLACE.written).store(lie, Ordering::Release);
            assert!(reader.pop(&mut buffer).is_err(), "{lie}");
        }
        for length in [9u64, 65, u64::from(u32::MAX), u64::MAX] {
            let (_, mut reader, bytes) = ends();
            assert!(bytes.write(PLACE.start, &length.to_le_bytes()));
            word(&bytes, PLACE.written).store(16, Ordering::Release);
            assert!(reader.pop(&mut buffer).is_err(), "{length}");
        }
        for lie in [u64::MAX, 1 << 40] {
            let (mut writer, _, bytes) = ends();
            word(&bytes, PLACE.read).store(lie, Ordering::Release);
            let found = (0..20).any(|_| writer.push(&[1; 24]).is_err());
            assert!(found, "{lie}");
        }
    }
}
