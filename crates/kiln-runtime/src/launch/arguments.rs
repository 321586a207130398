//! Arguments, packed as the kernel wants them.
//!
//! Room for the usual launch lies on the stack and is not cleared beforehand: a launch packs some forty bytes, and clearing half a
//! kilobyte for them costs as many cache lines as all the rest of it.

use std::mem::MaybeUninit;

/// Bytes kept inline; more go to the heap.
const INLINE_BYTES: usize = 512;

/// The packed arguments of one launch, with zeros between them.
// In this order: the first arguments lie beside their length.
#[repr(C)]
pub(super) struct Arguments {
    len: usize,
    /// All of them, once they are more than fit inline.
    spill: Vec<u8>,
    /// Written up to `len`, unless all moved to `spill`.
    inline: [MaybeUninit<u8>; INLINE_BYTES],
}

impl Arguments {
    /// None yet.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { inline: [const { MaybeUninit::uninit() }; INLINE_BYTES], len: 0, spill: Vec::new() }
    }

    /// Whether so many bytes at an offset follow those that are there, inline.
    #[inline(always)]
    pub(super) fn are_followed_by(&self, offset: usize, bytes: usize) -> bool {
        offset == self.len && offset <= INLINE_BYTES - bytes
    }

    /// Puts bytes at an offset. The number of bytes is known where this is called, and then it is a store and no call.
    #[inline(always)]
    pub(super) fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        // Nearly always each follows the one before it.
        if offset != self.len && !self.fill_up_to(offset) || end > INLINE_BYTES {
            return self.put_spilled(offset, bytes);
        }
        if let Some(place) = self.inline.get_mut(offset..end) {
            // SAFETY: the place has as many bytes as are given, is borrowed mutably, and may hold any of them.
            unsafe { place.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        self.len = self.len.max(end);
    }

    /// Writes zeros between what is there and an offset; false once all is on the heap.
    #[inline(never)]
    fn fill_up_to(&mut self, offset: usize) -> bool {
        if let Some(gap) = self.inline.get_mut(self.len..offset) {
            gap.fill(MaybeUninit::new(0));
        }
        self.spill.is_empty()
    }

    #[cold]
    #[inline(never)]
    fn put_spilled(&mut self, offset: usize, bytes: &[u8]) {
        if self.spill.is_empty() {
            self.spill = self.bytes().to_vec();
        }
        self.len = self.len.max(offset + bytes.len());
        self.spill.resize(self.len, 0);
        if let Some(place) = self.spill.get_mut(offset..offset + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Where the next argument goes if the kernel's layout is not known: behind the last one, aligned to a power of two.
    pub(super) fn next_offset(&self, align: usize) -> usize {
        self.len.next_multiple_of(align.max(1))
    }

    /// The packed bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        if !self.spill.is_empty() {
            return &self.spill;
        }
        // SAFETY: as long as nothing is spilled, `put` is the only one that raises `len`, and it has written every byte below it then:
        // what it was given, and zeros before that. It keeps `len` within the array.
        unsafe { std::slice::from_raw_parts(self.inline.as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_move_to_the_heap_and_keep_their_bytes() {
        let mut arguments = Arguments::new();
        let mut expected = vec![0; 2000];
        for (at, byte) in [(0, 1), (500, 2), (511, 3), (512, 4), (1999, 5), (8, 6)] {
            arguments.put(at, &[byte]);
            expected[at] = byte;
        }
        assert_eq!(arguments.bytes(), expected);
    }

    #[test]
    fn appended_arguments_are_aligned() {
        let mut arguments = Arguments::new();
        for (bytes, align) in [(&[1_u8][..], 1), (&[2; 8], 8), (&[3; 2], 2)] {
            arguments.put(arguments.next_offset(align), bytes);
        }
        assert_eq!(arguments.bytes(), [1, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3]);
    }
}
