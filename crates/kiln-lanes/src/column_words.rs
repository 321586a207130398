//! Columns of 64-bit values as words.

/// The two halves of each value, in the byte order of the host.
///
/// ```
/// let column: [u64; 32] = std::array::from_fn(|lane| lane as u64);
/// let words = kiln_lanes::words(&column);
/// assert_eq!(words.iter().map(|word| u64::from(*word)).sum::<u64>(), column.iter().sum());
/// ```
#[inline(always)]
pub fn words(column: &[u64; 32]) -> &[u32; 64] {
    // SAFETY: both arrays have 256 bytes, the alignment of u64 is enough for u32, and every bit pattern is valid for both.
    unsafe { &*std::ptr::from_ref(column).cast() }
}

/// The same, to be written.
#[inline(always)]
pub fn words_mut(column: &mut [u64; 32]) -> &mut [u32; 64] {
    // SAFETY: as above, and the exclusive borrow of the column is that of the words.
    unsafe { &mut *std::ptr::from_mut(column).cast() }
}

/// The first half of a column as 32 words: room for a column of 32-bit values.
///
/// ```
/// let mut column = [0; 32];
/// kiln_lanes::first_words_mut(&mut column)[31] = 7;
/// assert_eq!(kiln_lanes::first_words(&column)[31], 7);
/// assert!(column[16..].iter().all(|value| *value == 0));
/// ```
#[inline(always)]
pub fn first_words(column: &[u64; 32]) -> &[u32; 32] {
    // SAFETY: the words are the first 128 of the 256 bytes of the column, the alignment of u64 is enough for u32, and every bit pattern is valid for both.
    unsafe { &*std::ptr::from_ref(column).cast() }
}

/// The same, to be written.
#[inline(always)]
pub fn first_words_mut(column: &mut [u64; 32]) -> &mut [u32; 32] {
    // SAFETY: as above, and the exclusive borrow of the column is that of the words.
    unsafe { &mut *std::ptr::from_mut(column).cast() }
}
