//! The shared memory of one block.

use std::ops::Range;

use crate::exec::address_halves::{HALF, Half, Halves};
use crate::exec::warp_register::{Column, each, lanes_where};

/// Bytes of the lanes of a warp side by side.
const ROW_BYTES: u64 = 256;

/// Bytes of one block; only the thread that runs the block touches them.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
    /// A one for every bit that was written, when a launch asks for it.
    written: Option<Vec<u8>>,
}

impl Shared {
    /// Zeros for a block that starts; `track`: it is kept which bytes are written.
    pub(crate) fn start(&mut self, bytes: usize, track: bool) {
        self.bytes.clear();
        self.bytes.resize(bytes, 0);
        if track {
            let written = self.written.get_or_insert_default();
            written.clear();
            written.resize(bytes, 0);
        } else {
            self.written = None;
        }
    }

    /// Takes bytes for written.
    pub(crate) fn define(&mut self, range: Range<u64>) {
        let written =
            self.written.as_mut().and_then(|all| all.get_mut(range.start as usize..range.end as usize));
        written.into_iter().flatten().for_each(|byte| *byte = u8::MAX);
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The value at an address that was checked.
    #[inline(always)]
    pub(crate) fn load(&self, address: u64, bytes: u32) -> u64 {
        load(&self.bytes, address, bytes)
    }

    /// Writes the low bytes of a value at an address that was checked.
    #[inline(always)]
    pub(crate) fn store(&mut self, address: u64, bytes: u32, value: u64) {
        store(&mut self.bytes, address, bytes, value);
        if let Some(written) = &mut self.written {
            store(written, address, bytes, u64::MAX);
        }
    }

    pub(crate) fn load_lanes(&self, addresses: &Column, mask: u32, bytes: u32, out: &mut Column) {
        each(mask, |lane| out[lane] = self.load(addresses[lane], bytes));
    }

    pub(crate) fn store_lanes(&mut self, addresses: &Column, mask: u32, bytes: u32, values: &Column) {
        each(mask, |lane| self.store(addresses[lane], bytes, values[lane]));
    }

    /// Loads for a pattern of addresses that were checked; false if a byte was never written or the pattern has another size.
    pub(crate) fn load_halves(&self, halves: &Halves, out: &mut Column) -> bool {
        let (from, to) = halves.extent();
        if let Some(written) = &self.written {
            // What lies between the halves counts as well: that is rare, and only costs the slow way.
            let all = written.get(from as usize..to as usize);
            if to - from > ROW_BYTES || !all.is_some_and(is_all_ones) {
                let is_written = |half: &Half| {
                    let bytes =
                        if matches!(half, Half::Row(_)) { HALF as u64 } else { 1 } * u64::from(halves.bytes);
                    let start = half.start() as usize;
                    written.get(start..start + bytes as usize).is_some_and(is_all_ones)
                };
                if !halves.halves.iter().all(is_written) {
                    return false;
                }
            }
        }
        out.chunks_exact_mut(HALF).zip(&halves.halves).all(|(out, half)| match *half {
            Half::Place(start) => {
                out.fill(self.load(start, halves.bytes));
                true
            }
            Half::Row(start) => load_row(&self.bytes, start, halves.bytes, out),
        })
    }

    /// Whether every byte of a range was written, or that is not asked for.
    #[inline(always)]
    pub(crate) fn is_range_written(&self, start: u64, bytes: u64) -> bool {
        self.written.as_ref().is_none_or(|written| {
            written.get(start as usize..(start + bytes) as usize).is_some_and(is_all_ones)
        })
    }

    /// Loads neighbouring values of four bytes, from addresses that were checked.
    #[inline(always)]
    pub(crate) fn load_words(&self, start: u64, words: &mut [u32]) {
        let from = self.bytes.get(start as usize..start as usize + 4 * words.len()).unwrap_or(&[]);
        for (word, from) in words.iter_mut().zip(from.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*from);
        }
    }

    /// Stores neighbouring values of four bytes, to addresses that were checked.
    #[inline(always)]
    pub(crate) fn store_words(&mut self, start: u64, words: &[u32]) {
        let range = start as usize..start as usize + 4 * words.len();
        let into = self.bytes.get_mut(range.clone()).unwrap_or(&mut []);
        for (into, word) in into.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *into = word.to_le_bytes();
        }
        if let Some(written) = self.written.as_mut().and_then(|written| written.get_mut(range)) {
            written.fill(u8::MAX);
        }
    }

    /// Stores for a pattern of addresses that were checked; false if lanes share an address.
    pub(crate) fn store_halves(&mut self, halves: &Halves, values: &Column) -> bool {
        let Some(rows) = halves.rows() else { return false };
        for (values, start) in values.chunks_exact(HALF).zip(rows) {
            let range = start as usize..start as usize + HALF * halves.bytes as usize;
            if let Some(into) = self.bytes.get_mut(range.clone()) {
                match halves.bytes {
                    4 => into.chunks_exact_mut(4).zip(values).for_each(|(into, value)| {
                        into.copy_from_slice(&(*value as u32).to_le_bytes());
                    }),
                    _ => into.chunks_exact_mut(8).zip(values).for_each(|(into, value)| {
                        into.copy_from_slice(&value.to_le_bytes());
                    }),
                }
            }
            if let Some(written) = self.written.as_mut().and_then(|written| written.get_mut(range)) {
                written.fill(u8::MAX);
            }
        }
        true
    }

    /// The lanes that read a byte that was never written.
    pub(crate) fn unwritten(&self, addresses: &Column, mask: u32, bytes: u32) -> u32 {
        let Some(written) = &self.written else { return 0 };
        let ones = u64::MAX >> (64 - 8 * bytes.clamp(1, 8));
        lanes_where(mask, |lane| load(written, addresses[lane], bytes) != ones)
    }

    /// The bits of a value that are undefined.
    pub(crate) fn undefined(&self, address: u64, bytes: u32) -> u64 {
        let Some(written) = &self.written else { return 0 };
        !load(written, address, bytes) & (u64::MAX >> (64 - 8 * bytes.clamp(1, 8)))
    }

    /// Marks bits as undefined, after they were stored.
    pub(crate) fn undefine(&mut self, address: u64, bytes: u32, bits: u64) {
        if let Some(written) = &mut self.written {
            store(written, address, bytes, !bits);
        }
    }
}

/// Neighbouring elements of 4 or 8 bytes.
#[inline(always)]
fn load_row(from: &[u8], start: u64, bytes: u32, out: &mut [u64]) -> bool {
    let Some(from) = from.get(start as usize..start as usize + HALF * bytes as usize) else { return false };
    if bytes == 4 {
        for (out, from) in out.iter_mut().zip(from.as_chunks::<4>().0) {
            *out = u64::from(u32::from_le_bytes(*from));
        }
    } else {
        for (out, from) in out.iter_mut().zip(from.as_chunks::<8>().0) {
            *out = u64::from_le_bytes(*from);
        }
    }
    true
}

fn is_all_ones(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |all, byte| all & byte) == u8::MAX
}

/// A value of 1, 2, 4 or 8 bytes. Each size is a case, so that none costs a call.
#[inline(always)]
fn load(from: &[u8], address: u64, bytes: u32) -> u64 {
    let at = address as usize;
    let read = |len: usize| from.get(at..at + len);
    match bytes {
        4 => read(4).and_then(|b| b.try_into().ok()).map_or(0, |b| u64::from(u32::from_le_bytes(b))),
        8 => read(8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes),
        2 => read(2).and_then(|b| b.try_into().ok()).map_or(0, |b| u64::from(u16::from_le_bytes(b))),
        _ => from.get(at).map_or(0, |b| u64::from(*b)),
    }
}

#[inline(always)]
fn store(into: &mut [u8], address: u64, bytes: u32, value: u64) {
    let at = address as usize;
    match bytes {
        4 => into.get_mut(at..at + 4).map(|b| b.copy_from_slice(&(value as u32).to_le_bytes())),
        8 => into.get_mut(at..at + 8).map(|b| b.copy_from_slice(&value.to_le_bytes())),
        2 => into.get_mut(at..at + 2).map(|b| b.copy_from_slice(&(value as u16).to_le_bytes())),
        _ => into.get_mut(at).map(|b| *b = value as u8),
    };
}
