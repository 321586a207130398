//! Writing words to memory that is not read again soon.
//!
//! A store to memory that is not in the cache first reads its line from memory, only to overwrite it. For a few bytes that is right:
//! they are looked at next. For megabytes it is a third of all traffic, and it drives everything else out of the cache. Those are
//! stored past the cache where the processor can do that.

/// Below this, what is written is likely read soon, and from the cache.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const STREAM_FROM_BYTES: usize = 1 << 20;

/// Fills bytes with words, one after the other; there are eight bytes for each word.
#[inline]
pub(super) fn fill(into: &mut [u8], words: impl Iterator<Item = u64>) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if into.len() >= STREAM_FROM_BYTES && into.as_ptr().cast::<i64>().is_aligned() {
        return fill_past_the_cache(into, words);
    }
    for (place, word) in into.chunks_exact_mut(size_of::<u64>()).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn fill_past_the_cache(into: &mut [u8], words: impl Iterator<Item = u64>) {
    use std::arch::x86_64::{_mm_sfence, _mm_stream_si64};

    for (place, word) in into.chunks_exact_mut(size_of::<i64>()).zip(words) {
        // SAFETY: the place is eight bytes that are borrowed mutably, aligned because the first one is; every x86-64 has the instruction.
        unsafe { _mm_stream_si64(place.as_mut_ptr().cast(), word.cast_signed()) };
    }
    // Such stores are not ordered with what follows, so the bytes are made visible before anybody is told of them.
    // SAFETY: every x86-64 has the instruction.
    unsafe { _mm_sfence() };
}
