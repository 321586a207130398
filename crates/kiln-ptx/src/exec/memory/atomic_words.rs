//! Memory as atomic words.

use std::sync::atomic::{AtomicU64, Ordering};

use super::global::Cells;
use crate::exec::warp_register::each;

const WORD: u64 = 8;

/// Bytes that any number of threads may read and write, held in 64-bit words.
#[derive(Debug)]
pub struct Words {
    words: Box<[AtomicU64]>,
}

impl Words {
    /// Zeros, `bytes` rounded up to whole words.
    pub fn zeroed(bytes: u64) -> Self {
        Self { words: (0..bytes.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Copies bytes in from an offset; what lies beyond the end is dropped.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let single = |offset: u64, bytes: &[u8]| {
            for (at, byte) in (offset..).zip(bytes) {
                if at / WORD < self.words.len() as u64 {
                    self.store(at, 1, u64::from(*byte));
                }
            }
        };
        let (first, rest) = bytes.split_at(bytes_to_word(offset, bytes.len()));
        single(offset, first);
        let (whole, last) = rest.as_chunks::<8>();
        let at = offset + first.len() as u64;
        for (word, bytes) in self.words_from(at).iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        single(at + WORD * whole.len() as u64, last);
    }

    /// Copies bytes out from an offset; what lies beyond the end reads as zero.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        let single = |offset: u64, bytes: &mut [u8]| {
            (offset..).zip(bytes).for_each(|(at, byte)| *byte = self.load(at, 1) as u8);
        };
        let (first, rest) = bytes.split_at_mut(bytes_to_word(offset, bytes.len()));
        single(offset, first);
        let at = offset + first.len() as u64;
        let (whole, last) = rest.as_chunks_mut::<8>();
        single(at + WORD * whole.len() as u64, last);
        let words = self.words_from(at).iter().map(|word| word.load(Ordering::Relaxed));
        for (bytes, word) in whole.iter_mut().zip(words.chain(std::iter::repeat(0))) {
            *bytes = word.to_le_bytes();
        }
    }

    /// The words from an offset on, which is a multiple of their size.
    fn words_from(&self, offset: u64) -> &[AtomicU64] {
        self.words.get((offset / WORD) as usize..).unwrap_or_default()
    }

    fn word(&self, offset: u64) -> Option<&AtomicU64> {
        self.words.get((offset / WORD) as usize)
    }
}

/// How many of `len` bytes lie in front of the first whole word from an offset on.
fn bytes_to_word(offset: u64, len: usize) -> usize {
    ((offset.wrapping_neg() % WORD) as usize).min(len)
}

/// How far a value of `bytes` at `offset` is shifted within its word, and which bits it has when it is not.
#[inline(always)]
fn place(offset: u64, bytes: u32) -> (u32, u64) {
    ((offset % WORD) as u32 * 8, u64::MAX >> (64 - 8 * bytes.clamp(1, 8)))
}

impl Cells for Words {
    #[inline]
    fn load(&self, offset: u64, bytes: u32) -> u64 {
        let (shift, mask) = place(offset, bytes);
        self.word(offset).map_or(0, |word| word.load(Ordering::Relaxed) >> shift & mask)
    }

    #[inline]
    fn store(&self, offset: u64, bytes: u32, value: u64) {
        if bytes == 8 {
            if let Some(word) = self.word(offset) {
                word.store(value, Ordering::Relaxed);
            }
        } else {
            self.update(offset, bytes, &mut |_| value);
        }
    }

    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64 {
        let (shift, mask) = place(offset, bytes);
        let Some(word) = self.word(offset) else { return 0 };
        let mut current = word.load(Ordering::Relaxed);
        loop {
            let old = current >> shift & mask;
            let new = (current & !(mask << shift)) | (next(old) & mask) << shift;
            match word.compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return old,
                Err(seen) => current = seen,
            }
        }
    }

    fn load_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &mut [u64; 32]) {
        each(mask, |lane| values[lane] = self.load(offsets[lane], bytes));
    }

    fn store_lanes(&self, offsets: &[u64; 32], mask: u32, bytes: u32, values: &[u64; 32]) {
        each(mask, |lane| self.store(offsets[lane], bytes, values[lane]));
    }

    fn load_row(&self, offset: u64, bytes: u32, values: &mut [u64]) -> bool {
        let first = (offset / WORD) as usize;
        let len = values.len();
        match (bytes, offset % WORD) {
            (8, 0) => {
                let Some(words) = self.words.get(first..first + len) else { return false };
                values.iter_mut().zip(words).for_each(|(value, word)| *value = word.load(Ordering::Relaxed));
            }
            (4, 0) => {
                let Some(words) = self.words.get(first..first + len / 2) else { return false };
                for (pair, word) in values.as_chunks_mut::<2>().0.iter_mut().zip(words) {
                    let word = word.load(Ordering::Relaxed);
                    *pair = [word & 0xffff_ffff, word >> 32];
                }
            }
            _ => return false,
        }
        true
    }

    fn load_words(&self, offset: u64, words: &mut [u32]) -> bool {
        let first = (offset / WORD) as usize;
        let (pairs, rest) = words.as_chunks_mut::<2>();
        let from = self.words.get(first..first + pairs.len());
        let Some(from) = from.filter(|_| offset.is_multiple_of(WORD) && rest.is_empty()) else {
            return false;
        };
        for (pair, word) in pairs.iter_mut().zip(from) {
            let word = word.load(Ordering::Relaxed);
            *pair = [word as u32, (word >> 32) as u32];
        }
        true
    }

    fn store_words(&self, offset: u64, words: &[u32]) -> bool {
        let first = (offset / WORD) as usize;
        let (pairs, rest) = words.as_chunks::<2>();
        let into = self.words.get(first..first + pairs.len());
        let Some(into) = into.filter(|_| offset.is_multiple_of(WORD) && rest.is_empty()) else {
            return false;
        };
        for (pair, word) in pairs.iter().zip(into) {
            word.store(u64::from(pair[0]) | u64::from(pair[1]) << 32, Ordering::Relaxed);
        }
        true
    }

    fn store_row(&self, offset: u64, bytes: u32, values: &[u64]) -> bool {
        let first = (offset / WORD) as usize;
        let len = values.len();
        match (bytes, offset % WORD) {
            (8, 0) => {
                let Some(words) = self.words.get(first..first + len) else { return false };
                values.iter().zip(words).for_each(|(value, word)| word.store(*value, Ordering::Relaxed));
            }
            (4, 0) => {
                let Some(words) = self.words.get(first..first + len / 2) else { return false };
                for (pair, word) in values.as_chunks::<2>().0.iter().zip(words) {
                    word.store(pair[0] & 0xffff_ffff | pair[1] << 32, Ordering::Relaxed);
                }
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_word_do_not_disturb_each_other() {
        let words = Words::zeroed(16);
        words.store(0, 8, 0x1122_3344_5566_7788);
        words.store(2, 2, 0xabcd);
        words.store(7, 1, 0xee);
        assert_eq!(words.load(0, 8), 0xee22_3344_abcd_7788);
        assert_eq!(words.load(4, 4), 0xee22_3344);
        assert_eq!(words.update(4, 4, &mut |old| old + 1), 0xee22_3344);
        assert_eq!(words.load(4, 4), 0xee22_3345);
    }

    #[test]
    fn a_row_is_its_elements() {
        let words = Words::zeroed(160);
        let values: [u64; 16] = std::array::from_fn(|at| 0x1_0000_0000 + 3 * at as u64);
        for (bytes, offset) in [(4, 8), (8, 24)] {
            assert!(words.store_row(offset, bytes, &values));
            let mut back = [0; 16];
            assert!(words.load_row(offset, bytes, &mut back));
            for (at, value) in (0..).zip(back) {
                assert_eq!(value, words.load(offset + at * u64::from(bytes), bytes));
                assert_eq!(value, values[at as usize] & (u64::MAX >> (64 - 8 * bytes)));
            }
        }
        assert!(!words.store_row(4, 4, &values) && !words.load_row(48, 8, &mut [0; 16]));
    }

    #[test]
    fn bytes_come_back() {
        let words = Words::zeroed(10);
        words.write(3, b"kiln");
        let mut back = [0; 6];
        words.read(2, &mut back);
        assert_eq!(&back, b"\0kiln\0");
        for (offset, len) in [(0, 24), (1, 30), (8, 24), (5, 2), (7, 9), (16, 60), (90, 4)] {
            let (words, bytes) = (Words::zeroed(40), (1..=len as u8).collect::<Vec<_>>());
            words.write(offset, &bytes);
            let mut back = vec![9; 100];
            words.read(0, &mut back);
            let is_inside = |at: u64| (offset..offset + len).contains(&at) && at < 40;
            for at in 0..100 {
                let expected = if is_inside(at) { (at - offset + 1) as u8 } else { 0 };
                assert_eq!(back[at as usize], expected, "{offset} {len} {at}");
            }
            let mut again = vec![9; len as usize];
            words.read(offset, &mut again);
            assert_eq!(
                again,
                { offset..offset + len }
                    .map(|at| back.get(at as usize).map_or(0, |b| *b))
                    .collect::<Vec<_>>()
            );
        }
    }
}
