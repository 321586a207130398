//! Which bytes a kernel touched, one bit each.
//!
//! Many threads of a kernel set bits at once, so the words are atomic; a bit that is set already costs one load. The
//! bits come in chunks that are made when the first of them is set, so a kernel that touches little of a large segment
//! costs little.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const WORD_BITS: u64 = 64;
const CHUNK_BITS: u64 = 64 << 10;

/// One bit for each byte of a segment.
#[derive(Debug)]
pub(crate) struct Touched {
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
    bits: u64,
}

impl Touched {
    pub(crate) fn new(bits: u64) -> Self {
        let chunks = (0..bits.div_ceil(CHUNK_BITS)).map(|_| OnceLock::new()).collect();
        Self { chunks, bits }
    }

    /// Sets the bits of a range that lies in one word, as every aligned access of up to 64 bytes does.
    #[inline]
    pub(crate) fn set_in_word(&self, start: u64, bits: u64) {
        let mask = mask(start, bits);
        if let Some(word) = self.word(start)
            && word.load(Ordering::Relaxed) & mask != mask
        {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    /// The same, where no other thread sets bits.
    #[inline]
    pub(crate) fn set_alone(&self, start: u64, bits: u64) {
        if let Some(word) = self.word(start) {
            word.store(word.load(Ordering::Relaxed) | mask(start, bits), Ordering::Relaxed);
        }
    }

    /// Sets bits of the nth word.
    pub(crate) fn set_bits(&self, word: u64, bits: u64, alone: bool) {
        match self.word(word * WORD_BITS) {
            Some(word) if alone => word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed),
            Some(word) => {
                word.fetch_or(bits, Ordering::Relaxed);
            }
            None => {}
        }
    }

    /// Whether all bits of a range that lies in one word are set.
    #[inline]
    pub(crate) fn has_in_word(&self, start: u64, bits: u64) -> bool {
        let chunk = self.chunks.get((start / CHUNK_BITS) as usize).and_then(OnceLock::get);
        let word = chunk.and_then(|chunk| chunk.get((start % CHUNK_BITS / WORD_BITS) as usize));
        let mask = mask(start, bits);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & mask == mask)
    }

    /// Clears the bits of a range that lies in one word.
    #[inline]
    pub(crate) fn clear_in_word(&self, start: u64, bits: u64) {
        let mask = mask(start, bits);
        let chunk = self.chunks.get((start / CHUNK_BITS) as usize).and_then(OnceLock::get);
        if let Some(word) = chunk.and_then(|chunk| chunk.get((start % CHUNK_BITS / WORD_BITS) as usize))
            && word.load(Ordering::Relaxed) & mask != 0
        {
            word.fetch_and(!mask, Ordering::Relaxed);
        }
    }

    /// Whether any bit of a range is set that lies in one word.
    #[inline]
    pub(crate) fn any_in_word(&self, start: u64, bits: u64) -> bool {
        let chunk = self.chunks.get((start / CHUNK_BITS) as usize).and_then(OnceLock::get);
        let word = chunk.and_then(|chunk| chunk.get((start % CHUNK_BITS / WORD_BITS) as usize));
        word.is_some_and(|word| word.load(Ordering::Relaxed) & mask(start, bits) != 0)
    }

    /// Sets the bits of any range.
    pub(crate) fn set(&self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let bits = (WORD_BITS - at % WORD_BITS).min(range.end - at);
            self.set_in_word(at, bits);
            at += bits;
        }
    }

    /// The parts of a range whose bits are not set.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let bits = (WORD_BITS - at % WORD_BITS).min(range.end - at);
            if !self.has_in_word(at, bits) {
                (at..at + bits)
                    .filter(|bit| !self.has_in_word(*bit, 1))
                    .for_each(|bit| extend(&mut parts, bit, 1));
            }
            at += bits;
        }
        parts
    }

    /// The runs of bits that are set, in order.
    pub(crate) fn runs(&self) -> Vec<Range<u64>> {
        let mut runs = Vec::new();
        for (at, chunk) in self.chunks.iter().enumerate() {
            for (word_at, word) in chunk.get().into_iter().flatten().enumerate() {
                let start = at as u64 * CHUNK_BITS + word_at as u64 * WORD_BITS;
                word_runs(&mut runs, start, word.load(Ordering::Relaxed));
            }
        }
        runs
    }

    /// How many bits are set.
    pub(crate) fn count(&self) -> u64 {
        let words = self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
        words.map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    #[inline]
    fn word(&self, bit: u64) -> Option<&AtomicU64> {
        let at = (bit / CHUNK_BITS) as usize;
        let chunk = self.chunks.get(at)?.get_or_init(|| self.new_chunk(at));
        chunk.get((bit % CHUNK_BITS / WORD_BITS) as usize)
    }

    #[cold]
    fn new_chunk(&self, at: usize) -> Box<[AtomicU64]> {
        let bits = (self.bits - at as u64 * CHUNK_BITS).min(CHUNK_BITS);
        (0..bits.div_ceil(WORD_BITS)).map(|_| AtomicU64::new(0)).collect()
    }
}

/// The bits of a range that lies in one word.
#[inline]
pub(crate) fn mask(start: u64, bits: u64) -> u64 {
    (u64::MAX >> (WORD_BITS - bits)) << (start % WORD_BITS)
}

fn extend(runs: &mut Vec<Range<u64>>, start: u64, bits: u64) {
    match runs.last_mut() {
        Some(last) if last.end == start => last.end = start + bits,
        _ => runs.push(start..start + bits),
    }
}

fn word_runs(runs: &mut Vec<Range<u64>>, start: u64, word: u64) {
    let mut at = 0;
    while at < WORD_BITS && word >> at != 0 {
        at += u64::from((word >> at).trailing_zeros());
        let ones = u64::from((word >> at).trailing_ones());
        extend(runs, start + at, ones);
        at += ones;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_was_set() {
        let touched = Touched::new(200_000);
        for range in [0..1, 3..70, 127..129, 65_530..65_540, 131_000..200_000] {
            touched.set(range);
        }
        assert_eq!(touched.runs(), [0..1, 3..70, 127..129, 65_530..65_540, 131_000..200_000]);
        assert!(touched.has_in_word(64, 6) && !touched.has_in_word(64, 7));
        assert_eq!(touched.missing(0..130), [1..3, 70..127, 129..130]);
    }

    #[test]
    fn every_pattern_of_a_word_survives() {
        for pattern in [0, 1, 1 << 63, u64::MAX, 0xf0f0_f0f0_f0f0_f0f0, 0x8000_0000_0000_0001] {
            let mut runs = Vec::new();
            word_runs(&mut runs, 0, pattern);
            let back = runs.iter().flat_map(|run| run.clone()).fold(0u64, |word, bit| word | 1 << bit);
            assert_eq!(back, pattern);
        }
    }
}
