//! Reads, writes and atomics of the PTX executor on the bytes of one segment, recorded for the race check.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::SharedBytes;
use kiln_ptx::exec::{Cells, UndefinedStore};

use crate::check::touched_bytes::Touched;
use crate::check::undefined_bytes::UndefinedBytes;
use crate::check::undefined_value::UndefinedPart;
use crate::memory::address_map::Segment;
use crate::memory::memory_view::{MemoryView, SegmentTouched};

/// A segment. Offsets count from its start; the executor keeps them inside and aligned.
pub(super) struct SegmentCells<'v> {
    segment: &'v Segment,
    bytes: &'v SharedBytes,
    touched: &'v SegmentTouched,
    /// Where the segment begins in `bytes`.
    offset: u64,
    len: u64,
    /// Whether one thread runs the whole kernel.
    alone: bool,
    /// What was not written before the launch, by address; looked up at the first read.
    undefined: OnceLock<Vec<UndefinedPart>>,
    /// The place of the launch among all submissions.
    order: u64,
}

impl<'v> SegmentCells<'v> {
    /// The nth segment of a view.
    pub(super) fn new(view: &'v MemoryView, at: usize, segment: &'v Segment) -> Self {
        Self {
            segment,
            bytes: &segment.physical.bytes,
            touched: view.touched_in(at),
            offset: segment.offset,
            len: segment.end - segment.start,
            alone: view.is_alone(),
            undefined: if view.checks_undefined().is_some() { OnceLock::new() } else { Vec::new().into() },
            order: view.checks_undefined().unwrap_or(0),
        }
    }

    fn undefined(&self) -> &[UndefinedPart] {
        self.undefined.get_or_init(|| {
            let place = self.offset..self.offset + self.len;
            let mut parts = self.segment.physical.shadow().undefined(place, self.order);
            for part in &mut parts {
                part.bytes = part.bytes.start - self.offset..part.bytes.end - self.offset;
            }
            parts
        })
    }

    /// Whether each byte of a range was written, before the launch or by it, with contents that are defined.
    fn is_written(&self, undefined: &[UndefinedPart], offset: u64, bytes: u64) -> bool {
        if self.touched.undefined.get().is_some_and(|copied| copied.any(offset, bytes)) {
            return false;
        }
        let end = offset + bytes;
        let first = undefined.partition_point(|part| part.bytes.end <= offset);
        let mut parts =
            undefined.iter().skip(first).map(|part| &part.bytes).take_while(|part| part.start < end);
        let has = |bits: &OnceLock<Touched>, at, len| {
            bits.get().is_some_and(|bits: &Touched| bits.has_in_word(at, len))
        };
        parts.all(|part| {
            let (start, stop) = (part.start.max(offset), part.end.min(end));
            let SegmentTouched { writes, atomics, .. } = self.touched;
            has(writes, start, stop - start)
                || (start..stop).all(|at| has(writes, at, 1) || has(atomics, at, 1))
        })
    }

    #[inline]
    fn value(&self, offset: u64, bytes: u32) -> u64 {
        let at = (self.offset + offset) as usize;
        let value = match bytes {
            1 => self.bytes.atomic_u8(at).map(|cell| u64::from(cell.load(Ordering::Relaxed))),
            2 => self.bytes.atomic_u16(at).map(|cell| u64::from(cell.load(Ordering::Relaxed))),
            4 => self.bytes.atomic_u32(at).map(|cell| u64::from(cell.load(Ordering::Relaxed))),
            _ => self.bytes.atomic_u64(at).map(|cell| cell.load(Ordering::Relaxed)),
        };
        debug_assert!(value.is_some(), "the executor keeps accesses inside and aligned");
        value.unwrap_or(0)
    }

    #[inline]
    fn put(&self, offset: u64, bytes: u32, value: u64) {
        let at = (self.offset + offset) as usize;
        let done = match bytes {
            1 => self.bytes.atomic_u8(at).map(|cell| cell.store(value as u8, Ordering::Relaxed)),
            2 => self.bytes.atomic_u16(at).map(|cell| cell.store(value as u16, Ordering::Relaxed)),
            4 => self.bytes.atomic_u32(at).map(|cell| cell.store(value as u32, Ordering::Relaxed)),
            _ => self.bytes.atomic_u64(at).map(|cell| cell.store(value, Ordering::Relaxed)),
        };
        debug_assert!(done.is_some(), "the executor keeps accesses inside and aligned");
    }

    /// A read of what this kernel wrote itself is covered by the write.
    #[inline]
    fn read(&self, offset: u64, bytes: u64) {
        let own = self.touched.writes.get().is_some_and(|writes| writes.has_in_word(offset, bytes));
        if !own {
            let reads = self.touched.reads.get_or_init(|| Touched::new(self.len));
            if !reads.has_in_word(offset, bytes) {
                self.set(reads, offset, bytes);
            }
        }
    }

    #[inline]
    fn written(&self, offset: u64, bytes: u64) {
        let writes = self.touched.writes.get_or_init(|| Touched::new(self.len));
        self.set(writes, offset, bytes);
        if let Some(undefined) = self.touched.undefined.get() {
            undefined.define(offset, bytes);
        }
    }

    #[inline]
    fn set(&self, bits: &Touched, offset: u64, bytes: u64) {
        if self.alone { bits.set_alone(offset, bytes) } else { bits.set_in_word(offset, bytes) }
    }

    /// A range in parts that each share a word of bits: where the part starts and how long it is.
    fn parts(offset: u64, bytes: u64, mut each: impl FnMut(u64, u64)) {
        const WORD_BYTES: u64 = crate::check::touched_bytes::WORD_BITS;
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let stop = (at / WORD_BYTES * WORD_BYTES + WORD_BYTES).min(end);
            each(at, stop - at);
            at = stop;
        }
    }

    /// The words of eight bytes from an offset on, if it is a multiple of eight and so many are there.
    fn longs(&self, offset: u64, count: usize) -> Option<impl Iterator<Item = &AtomicU64>> {
        let start = (self.offset + offset) as usize;
        let long = move |at: usize| self.bytes.atomic_u64(start + 8 * at);
        let is_there = count > 0 && long(0).is_some() && long(count - 1).is_some();
        is_there.then(|| (0..count).filter_map(long))
    }

    /// The lanes of a mask in runs of neighbouring elements that share a word of bits: where the run starts and how long it is.
    fn runs(offsets: &[u64; 32], mask: u32, bytes: u32, mut each: impl FnMut(u64, u64)) {
        const WORD_BYTES: u64 = crate::check::touched_bytes::WORD_BITS;
        let size = u64::from(bytes);
        let mut run: Option<(u64, u64)> = None;
        let mut lanes = mask;
        while lanes != 0 {
            let offset = offsets[lanes.trailing_zeros() as usize];
            lanes &= lanes - 1;
            run = match run {
                Some((start, len)) if offset == start + len && !offset.is_multiple_of(WORD_BYTES) => {
                    Some((start, len + size))
                }
                Some((start, len)) => {
                    each(start, len);
                    Some((offset, size))
                }
                None => Some((offset, size)),
            };
        }
        if let Some((start, len)) = run {
            each(start, len);
        }
    }
}

impl Cells for SegmentCells<'_> {
    fn load(&self, offset: u64, bytes: u32) -> u64 {
        self.read(offset, u64::from(bytes));
        self.value(offset, bytes)
    }

    fn peek(&self, offset: u64, bytes: u32) -> u64 {
        self.value(offset, bytes)
    }

    fn store(&self, offset: u64, bytes: u32, value: u64) {
        self.written(offset, u64::from(bytes));
        self.put(offset, bytes, value);
    }

    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64 {
        let atomics = self.touched.atomics.get_or_init(|| Touched::new(self.len));
        atomics.set_in_word(offset, u64::from(bytes));
        if let Some(undefined) = self.touched.undefined.get() {
            undefined.define(offset, u64::from(bytes));
        }
        let at = (self.offset + offset) as usize;
        const ORDER: Ordering = Ordering::AcqRel;
        const SEEN: Ordering = Ordering::Acquire;
        macro_rules! update {
            ($cell:expr, $type:ty) => {
                $cell
                    .and_then(|cell| {
                        cell.fetch_update(ORDER, SEEN, |old| Some(next(u64::from(old)) as $type)).ok()
                    })
                    .map(u64::from)
            };
        }
        let before = match bytes {
            1 => update!(self.bytes.atomic_u8(at), u8),
            2 => update!(self.bytes.atomic_u16(at), u16),
            4 => update!(self.bytes.atomic_u32(at), u32),
            _ => update!(self.bytes.atomic_u64(at), u64),
        };
        debug_assert!(before.is_some(), "the executor keeps accesses inside and aligned");
        before.unwrap_or(0)
    }

    fn load_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &mut [u64; 32]) {
        Self::runs(offsets, mask, bytes, |start, len| self.read(start, len));
        let mut lanes = mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            values[lane] = self.value(offsets[lane], bytes);
        }
    }

    fn load_words(&self, offset: u64, words: &mut [u32]) -> bool {
        let (pairs, []) = words.as_chunks_mut::<2>() else { return false };
        let Some(longs) = self.longs(offset, pairs.len()) else { return false };
        Self::parts(offset, 8 * pairs.len() as u64, |start, len| self.read(start, len));
        for (pair, long) in pairs.iter_mut().zip(longs) {
            let long = u64::from_le(long.load(Ordering::Relaxed));
            *pair = [long as u32, (long >> 32) as u32];
        }
        true
    }

    fn store_words(&self, offset: u64, words: &[u32]) -> bool {
        let (pairs, []) = words.as_chunks::<2>() else { return false };
        let Some(longs) = self.longs(offset, pairs.len()) else { return false };
        Self::parts(offset, 8 * pairs.len() as u64, |start, len| self.written(start, len));
        for (pair, long) in pairs.iter().zip(longs) {
            let value = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            long.store(value.to_le(), Ordering::Relaxed);
        }
        true
    }

    fn load_row(&self, offset: u64, bytes: u32, values: &mut [u64]) -> bool {
        let Some(longs) = self.longs(offset, values.len()).filter(|_| bytes == 8) else { return false };
        Self::parts(offset, 8 * values.len() as u64, |start, len| self.read(start, len));
        values.iter_mut().zip(longs).for_each(|(value, long)| *value = long.load(Ordering::Relaxed));
        true
    }

    fn store_row(&self, offset: u64, bytes: u32, values: &[u64]) -> bool {
        let Some(longs) = self.longs(offset, values.len()).filter(|_| bytes == 8) else { return false };
        Self::parts(offset, 8 * values.len() as u64, |start, len| self.written(start, len));
        values.iter().zip(longs).for_each(|(value, long)| long.store(*value, Ordering::Relaxed));
        true
    }

    fn is_range_written(&self, offset: u64, bytes: u64) -> bool {
        let undefined = self.undefined();
        if undefined.is_empty() && self.touched.undefined.get().is_none() {
            return true;
        }
        let mut all = true;
        Self::parts(offset, bytes, |start, len| all = all && self.is_written(undefined, start, len));
        all
    }

    fn unwritten(&self, offsets: &[u64; 32], mask: u32, bytes: u32) -> u32 {
        let undefined = self.undefined();
        if undefined.is_empty() && self.touched.undefined.get().is_none() {
            return 0;
        }
        let mut all = true;
        Self::runs(offsets, mask, bytes, |start, len| all = all && self.is_written(undefined, start, len));
        if all {
            return 0;
        }
        let lanes = (0..32).filter(|lane| mask >> lane & 1 != 0);
        let bare = lanes.filter(|lane| !self.is_written(undefined, offsets[*lane], u64::from(bytes)));
        bare.fold(0, |bits, lane| bits | 1 << lane)
    }

    fn undefined_bits(&self, offset: u64, bytes: u32) -> u64 {
        let undefined = self.undefined();
        (0..u64::from(bytes)).fold(0, |bits, byte| {
            let at = offset + byte;
            let copied = self.touched.undefined.get().map_or(0, |copied| copied.bits(at));
            let mask = match copied {
                0 if self.is_written(undefined, at, 1) => 0,
                0 => {
                    let part = undefined.partition_point(|part| part.bytes.end <= at);
                    undefined.get(part).map_or(0, |part| part.bits)
                }
                mask => mask,
            };
            bits | u64::from(mask) << (8 * byte)
        })
    }

    fn undefine(&self, offset: u64, bytes: u32, bits: u64, key: u64, store: &dyn Fn() -> UndefinedStore) {
        let undefined = self.touched.undefined.get_or_init(|| UndefinedBytes::new(self.len));
        undefined.mark(offset, bytes, bits, key, store);
    }

    fn store_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &[u64; 32]) {
        Self::runs(offsets, mask, bytes, |start, len| self.written(start, len));
        let mut lanes = mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            self.put(offsets[lane], bytes, values[lane]);
        }
    }
}
