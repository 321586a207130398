//! Finds the next whole block behind one that is damaged.
//!
//! Blocks have no mark. A head has one checksum of itself and one of the contents: a place where both are right is a block. That other bytes look so by
//! chance happens once in 2^64 places.

use std::io::{self, Read};

use crate::format::{BlockHead, HEAD_BYTES};

/// Bytes that are read at once.
const STEP_BYTES: u64 = 64 << 10;
/// Bytes that were looked at are let go when there are so many.
const KEPT_BYTES: usize = 1 << 20;

/// Bytes behind heads that are compared with their checksum in vain. After that a head is taken at its word, so that a file made up of heads is read in a
/// time that grows with its length.
const CHECKED_BYTES: u64 = 64 << 20;

/// A file of which some bytes can be given back.
pub(super) struct GivenBack<R> {
    from: R,
    /// Read again before the rest of the file.
    back: Vec<u8>,
    at: usize,
    /// What is left of [`CHECKED_BYTES`].
    left_to_check: u64,
}

/// What a search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// A whole block so many bytes behind the first one that was searched. It is read next.
    Block(u64),
    /// The file ends after so many bytes.
    End(u64),
    /// The same, and the end is within the contents of a block.
    Cut(u64),
}

impl<R> GivenBack<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, back: Vec::new(), at: 0, left_to_check: CHECKED_BYTES }
    }

    /// The file itself, of which nothing is given back any more.
    pub(super) fn restart(&mut self) -> &mut R {
        self.back.clear();
        self.at = 0;
        self.left_to_check = CHECKED_BYTES;
        &mut self.from
    }

    /// These bytes are read next.
    pub(super) fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(self.back.get(self.at..).unwrap_or_default());
        (self.back, self.at) = (bytes, 0);
    }
}

impl<R: Read> GivenBack<R> {
    /// Searches a whole block in these bytes and those behind them.
    pub(super) fn find_block(&mut self, mut bytes: Vec<u8>) -> io::Result<Found> {
        let (mut at, mut let_go, mut is_cut) = (0, 0_u64, false);
        loop {
            if at >= KEPT_BYTES {
                bytes.drain(..at);
                let_go += at as u64;
                at = 0;
            }
            if !self.fill(&mut bytes, at + HEAD_BYTES)? {
                let all = let_go + bytes.len() as u64;
                return Ok(if is_cut { Found::Cut(all) } else { Found::End(all) });
            }
            let head = bytes.get(at..).and_then(<[u8]>::first_chunk).and_then(BlockHead::of_some_contents);
            if let Some(head) = head {
                let (begin, end) = (at + HEAD_BYTES, at + HEAD_BYTES + head.bytes as usize);
                let is_there = self.fill(&mut bytes, end)?;
                is_cut |= !is_there;
                if is_there && bytes.get(begin..end).is_some_and(|contents| head.fits(contents)) {
                    self.give_back(bytes.split_off(at));
                    return Ok(Found::Block(let_go + at as u64));
                }
                self.left_to_check = self.left_to_check.saturating_sub(head.bytes.into());
                if self.left_to_check == 0 {
                    at = end.min(bytes.len());
                    continue;
                }
            }
            at += 1;
        }
    }

    /// Reads until there are so many bytes; false if the file ends before.
    fn fill(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
        while bytes.len() < wanted {
            if self.take(STEP_BYTES).read_to_end(bytes)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<R: Read> Read for GivenBack<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.back.get(self.at..) {
            Some(mut rest) if !rest.is_empty() => {
                let read = rest.read(buffer)?;
                self.at += read;
                Ok(read)
            }
            _ => self.from.read(buffer),
        }
    }
}
