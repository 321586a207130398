//! Writing words to memory that is not read again soon.
//!
//! A store to memory that is not in the cache first reads its line from memory, only to overwrite it. For a few bytes that is right:
//! they are looked at next. For megabytes it is a third of all traffic, and it drives everything else out of the cache. Those are
//! stored past the cache where the processor can do that.
//!
//! One thread that goes through memory from front to back waits for one page of it at a time. Several pages side by side, a line of
//! each in turn, keep more of the memory busy: 10.3 GB/s where one after the other makes 7.0, on a core of a Xeon of the fourth
//! generation.

/// Below this, what is written is likely read soon, and from the cache.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const STREAM_FROM_BYTES: usize = 1 << 20;

/// Fills bytes with words; there are eight bytes for each, and `word` tells which one belongs at a place.
#[inline]
pub(super) fn fill(into: &mut [u8], word: impl Fn(usize) -> u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if into.len() >= STREAM_FROM_BYTES && into.as_ptr().cast::<u64>().is_aligned() {
        return past_the_cache::fill(into, word);
    }
    for (at, place) in into.chunks_exact_mut(size_of::<u64>()).enumerate() {
        place.copy_from_slice(&word(at).to_ne_bytes());
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod past_the_cache {
    use std::arch::x86_64::{_mm_sfence, _mm_stream_si64};

    const WORD: usize = size_of::<u64>();
    /// Words of a cache line, and of a page.
    const LINE: usize = 64 / WORD;
    const PAGE: usize = 4096 / WORD;
    /// Pages that are written side by side.
    const PAGES: usize = 8;

    /// As [`fill`](super::fill), for bytes that begin at a word. Bands begin at a line of the destination: a line that is written in
    /// two visits goes to memory twice, and in part, which costs more than all that the pages side by side bring.
    pub(super) fn fill(into: &mut [u8], word: impl Fn(usize) -> u64) {
        let head = into.as_ptr().align_offset(LINE * WORD).min(into.len());
        let (head, lines) = into.split_at_mut(head);
        let (bands, rest) = lines.as_chunks_mut::<{ PAGES * PAGE * WORD }>();
        let first = head.len() / WORD;
        let last = first + bands.len() * PAGES * PAGE;
        fill_in_turn(head, &word);
        for (band, into) in bands.iter_mut().enumerate() {
            fill_band(into, |at| word(first + band * PAGES * PAGE + at));
        }
        fill_in_turn(rest, |at| word(last + at));
        // Such stores are not ordered with what follows, so the bytes are made visible before any thread is told of them.
        // SAFETY: every x86-64 has the instruction.
        unsafe { _mm_sfence() };
    }

    #[inline(always)]
    fn fill_in_turn(into: &mut [u8], word: impl Fn(usize) -> u64) {
        for (at, place) in into.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
            store(place, word(at));
        }
    }

    #[inline(always)]
    fn fill_band(into: &mut [u8; PAGES * PAGE * WORD], word: impl Fn(usize) -> u64) {
        let (places, _) = into.as_chunks_mut::<WORD>();
        for line in (0..PAGE).step_by(LINE) {
            for page in (0..PAGES * PAGE).step_by(PAGE) {
                let first = page + line;
                for (at, place) in places[first..first + LINE].iter_mut().enumerate() {
                    store(place, word(first + at));
                }
            }
        }
    }

    #[inline(always)]
    fn store(place: &mut [u8; WORD], word: u64) {
        // SAFETY: the place is eight bytes that are borrowed mutably, and aligned because the first one is and all before it are whole
        // words; every x86-64 has the instruction.
        unsafe { _mm_stream_si64(place.as_mut_ptr().cast(), word.cast_signed()) };
    }
}
