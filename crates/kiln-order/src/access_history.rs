//! What a block remembers: who wrote which bytes last, and who read them since.
//!
//! Nearly every block is used whole and by one stream at a time, and then two numbers say it all: the last write and the last read of
//! that stream. Planning and publishing such a use is a comparison and a store. A second stream that reads, or a view, makes the block
//! *spread*: sets of stamps, one for each segment of bytes. A view splits segments where it must: two views that share no bytes then
//! wait for nothing of each other. Neighbours that agree become one again, and past a limit neighbours are merged though they differ,
//! which may cost a wait that was not needed and never loses one. The next write of the whole block makes it plain again.

use std::ops::Range;

use kiln_driver::Access;

use crate::stamp::{Stamp, Stamps};
use crate::stream_key::StreamKey;

/// Segments of one block before neighbours are merged by force.
const MAX_SEGMENTS: usize = 64;

/// The uses of one block, by bytes.
// In this order: all that a plain block needs lies in the first half of a cache line, behind the latch.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct AccessHistory {
    bytes: u64,
    sole: Sole,
    first: Segment,
    rest: Vec<Segment>,
    /// Something that wrote it did not end as it should.
    is_doubted: bool,
    /// The contents are gone and no use is planned any more. Always spread then, so that a plain block need not be asked.
    is_lost: bool,
    /// The contents may not be written, and no write is planned. Always spread then, too.
    is_sealed: bool,
    /// The number of the block, where it is one of a device.
    block: Option<u64>,
}

/// The uses of a whole block by one stream; number 0 is none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Sole {
    write: u64,
    read: u64,
    stream: StreamKey,
    /// The sets of the history hold the stamps, and not this.
    is_spread: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    start: u64,
    writes: Stamps,
    reads: Stamps,
}

impl AccessHistory {
    /// A block whose memory may be used from a stamp on: allocation counts as the first write.
    pub fn new(bytes: u64, allocated: Stamp) -> Self {
        Self {
            bytes,
            sole: Sole { stream: allocated.stream, write: allocated.number, read: 0, is_spread: false },
            first: Segment { start: 0, writes: Stamps::default(), reads: Stamps::default() },
            rest: Vec::new(),
            is_doubted: false,
            is_lost: false,
            is_sealed: false,
            block: None,
        }
    }

    /// The same, of a block with a number.
    #[must_use]
    pub fn of_block(self, number: u64) -> Self {
        Self { block: Some(number), ..self }
    }

    /// The number of the block it speaks of; none for memory of the host.
    pub fn block(&self) -> Option<u64> {
        self.block
    }

    /// Says which stamps an access has to come after: a read after the last writes, a write after those and all reads
    /// since.
    #[inline]
    pub fn needs(&self, range: &Range<u64>, access: Access, mut need: impl FnMut(Stamp)) {
        if self.sole.is_spread {
            return self.overlapping(range).for_each(|segment| segment.needs(access, &mut need));
        }
        need(self.sole.write());
        if access.writes() {
            need(self.sole.read());
        }
    }

    /// Whether a stream alone has used the block, so that its next use needs nothing.
    #[inline]
    pub fn is_sole(&self, stream: StreamKey) -> bool {
        self.sole.stream == stream && !self.sole.is_spread
    }

    /// Whether two numbers say it all. A block that is lost or sealed is not plain.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.sole.is_spread
    }

    /// Says that the contents are gone: every later use is refused.
    pub fn lose(&mut self) {
        self.spread();
        self.is_lost = true;
    }

    /// Whether the contents are gone.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The contents are there again, written by a stamp.
    pub fn restore(&mut self, stamp: Stamp) {
        self.is_lost = false;
        self.sole = Sole { stream: stamp.stream, write: stamp.number, read: 0, is_spread: false };
        if self.is_sealed {
            self.spread();
        }
    }

    /// Says that the contents may not be written: every later write is refused.
    pub fn seal(&mut self) {
        self.spread();
        self.is_sealed = true;
    }

    /// Says that the contents may be written again. The next write of the whole block makes it plain.
    pub fn unseal(&mut self) {
        self.is_sealed = false;
    }

    /// Whether the contents may not be written.
    #[inline]
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// The reads alone.
    pub(crate) fn reads_only(&self, range: &Range<u64>, mut need: impl FnMut(Stamp)) {
        if self.sole.is_spread {
            self.overlapping(range).for_each(|segment| segment.reads.iter().for_each(&mut need));
        } else {
            need(self.sole.read());
        }
    }

    /// Forgets who read; for a planner with a rule taken out.
    pub(crate) fn forget_reads(&mut self) {
        self.sole.read = 0;
        self.segments_mut().for_each(|segment| segment.reads.clear());
    }

    /// Remembers an access. `done` tells which stamps need not be remembered any more.
    #[inline]
    pub fn publish(
        &mut self,
        range: &Range<u64>,
        access: Access,
        stamp: Stamp,
        done: impl Fn(Stamp) -> bool,
    ) {
        let whole = range.start == 0 && range.end >= self.bytes;
        if whole && access.writes() {
            self.sole = Sole { stream: stamp.stream, write: stamp.number, read: 0, is_spread: false };
        } else if whole && self.is_sole(stamp.stream) {
            self.sole.read = stamp.number;
        } else {
            self.publish_spread(range, access, stamp, done);
        }
    }

    #[cold]
    fn publish_spread(
        &mut self,
        range: &Range<u64>,
        access: Access,
        stamp: Stamp,
        done: impl Fn(Stamp) -> bool,
    ) {
        if range.is_empty() {
            return;
        }
        self.spread();
        self.split_at(range.start);
        self.split_at(range.end);
        self.segments_mut()
            .filter(|segment| range.contains(&segment.start))
            .for_each(|segment| segment.publish(access, stamp, &done));
        self.merge();
    }

    /// Moves what the two numbers say into the sets.
    fn spread(&mut self) {
        if !self.sole.is_spread {
            self.sole.is_spread = true;
            self.rest.clear();
            self.first.writes.replace(self.sole.write());
            self.first.reads.replace(self.sole.read());
        }
    }

    /// Whether the contents are what the work that wrote them was to leave.
    pub fn is_trusted(&self) -> bool {
        !self.is_doubted
    }

    /// Notes that work which wrote the block did not end as it should.
    pub fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// Notes that bytes were written by work that needs none of what was there; all of them make the block trusted again.
    pub fn overwritten(&mut self, range: &Range<u64>) {
        self.is_doubted &= range.start > 0 || range.end < self.bytes;
    }

    /// Every stamp a free has to come after.
    pub fn all(&self) -> Stamps {
        let mut all = Stamps::default();
        self.needs(&(0..u64::MAX), Access::Write, |stamp| all.insert(stamp));
        all
    }

    /// The reads since the last writes, of any bytes.
    pub fn reads(&self) -> Stamps {
        let mut reads = Stamps::default();
        self.reads_only(&(0..u64::MAX), |stamp| reads.insert(stamp));
        reads
    }

    /// The last writes, of any bytes.
    pub fn writes(&self) -> Stamps {
        let mut writes = Stamps::default();
        self.needs(&(0..u64::MAX), Access::Read, |stamp| writes.insert(stamp));
        writes
    }

    fn overlapping<'a>(&'a self, range: &'a Range<u64>) -> impl Iterator<Item = &'a Segment> {
        let ends = self.rest.iter().map(|segment| segment.start).chain([self.bytes]);
        std::iter::once(&self.first)
            .chain(&self.rest)
            .zip(ends)
            .filter(|(segment, end)| segment.start < range.end && range.start < *end)
            .map(|(segment, _)| segment)
    }

    fn segments_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        std::iter::once(&mut self.first).chain(&mut self.rest)
    }

    /// Makes a segment begin at a place, unless it is the start or the end of the block.
    fn split_at(&mut self, at: u64) {
        if at == 0 || at >= self.bytes {
            return;
        }
        match self.rest.binary_search_by_key(&at, |segment| segment.start) {
            Ok(_) => {}
            Err(place) => {
                let before = place.checked_sub(1).map_or(&self.first, |index| &self.rest[index]);
                let segment = Segment { start: at, ..before.clone() };
                self.rest.insert(place, segment);
            }
        }
    }

    fn merge(&mut self) {
        let first = &self.first;
        if self.rest.first().is_some_and(|next| next.agrees(first)) {
            self.rest.remove(0);
        }
        self.rest.dedup_by(|next, before| next.agrees(before));
        while self.rest.len() >= MAX_SEGMENTS {
            let mut merged = Vec::with_capacity(MAX_SEGMENTS);
            for pair in self.rest.chunks(2) {
                let mut segment = pair[0].clone();
                pair[1..].iter().for_each(|next| segment.absorb(next));
                merged.push(segment);
            }
            self.rest = merged;
        }
    }
}

impl Sole {
    fn write(self) -> Stamp {
        Stamp { stream: self.stream, number: self.write }
    }

    fn read(self) -> Stamp {
        Stamp { stream: self.stream, number: self.read }
    }
}

impl Segment {
    fn needs(&self, access: Access, need: &mut impl FnMut(Stamp)) {
        self.writes.iter().for_each(&mut *need);
        if access.writes() {
            self.reads.iter().for_each(need);
        }
    }

    fn publish(&mut self, access: Access, stamp: Stamp, done: impl Fn(Stamp) -> bool) {
        if access.writes() {
            self.writes.replace(stamp);
            self.reads.clear();
        } else {
            self.reads.insert_pruning(stamp, done);
        }
    }

    fn agrees(&self, other: &Self) -> bool {
        self.writes == other.writes && self.reads == other.reads
    }

    fn absorb(&mut self, other: &Self) {
        self.writes.extend(&other.writes);
        self.reads.extend(&other.reads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_key::StreamKey;

    fn stamp(stream: usize, number: u64) -> Stamp {
        Stamp { stream: StreamKey::new(stream).unwrap(), number }
    }

    fn needs(history: &AccessHistory, range: Range<u64>, access: Access) -> Vec<Stamp> {
        let mut all = Stamps::default();
        history.needs(&range, access, |stamp| all.insert(stamp));
        let mut all: Vec<Stamp> = all.iter().collect();
        all.sort_by_key(|stamp| stamp.stream);
        all
    }

    #[test]
    fn a_read_waits_for_the_write_and_a_write_for_every_reader_since() {
        let mut history = AccessHistory::new(100, stamp(0, 1));
        let never = |_| false;
        assert_eq!(needs(&history, 0..100, Access::Read), [stamp(0, 1)]);
        history.publish(&(0..100), Access::Read, stamp(1, 4), never);
        history.publish(&(0..100), Access::Read, stamp(2, 7), never);
        assert_eq!(needs(&history, 0..100, Access::Read), [stamp(0, 1)]);
        assert_eq!(needs(&history, 0..100, Access::Write), [stamp(0, 1), stamp(1, 4), stamp(2, 7)]);
        history.publish(&(0..100), Access::ReadWrite, stamp(3, 2), never);
        assert_eq!(needs(&history, 0..100, Access::Write), [stamp(3, 2)]);
    }

    #[test]
    fn views_without_common_bytes_know_nothing_of_each_other() {
        let mut history = AccessHistory::new(100, stamp(0, 1));
        let never = |_| false;
        history.publish(&(0..50), Access::Write, stamp(1, 1), never);
        history.publish(&(50..100), Access::Write, stamp(2, 1), never);
        assert_eq!(needs(&history, 0..50, Access::Write), [stamp(1, 1)]);
        assert_eq!(needs(&history, 50..51, Access::Read), [stamp(2, 1)]);
        assert_eq!(needs(&history, 49..51, Access::Read), [stamp(1, 1), stamp(2, 1)]);
        history.publish(&(0..100), Access::Write, stamp(0, 9), never);
        assert_eq!(needs(&history, 10..20, Access::Read), [stamp(0, 9)]);
        assert!(!history.sole.is_spread);
    }

    #[test]
    fn a_block_cut_to_pieces_stays_small_and_loses_nothing() {
        let pieces = if cfg!(miri) { 60 } else { 4096 };
        let mut history = AccessHistory::new(1 << 20, Stamp::default());
        for piece in 0..pieces {
            let range = piece * 256..piece * 256 + 128;
            history.publish(&range, Access::Write, stamp((piece % 40) as usize, piece + 1), |_| false);
        }
        assert!(history.rest.len() <= MAX_SEGMENTS);
        for piece in 0..pieces {
            let at = piece * 256..piece * 256 + 128;
            let stream = (piece % 40) as usize;
            assert!(
                needs(&history, at, Access::Read)
                    .iter()
                    .any(|stamp| stamp.stream.index() == stream && stamp.number > piece)
            );
        }
    }
}
