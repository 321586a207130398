//! Memory that a device or another thread may change at any time.
//!
//! A device copies into host memory at its own time, a worker process has the same page mapped, and the threads
//! of a simulated kernel all write to one block. No Rust reference to such bytes can be handed out, so this type
//! copies: every access goes through relaxed atomics, a word at a time where it can, which costs about what a plain
//! copy costs. A caller that knows it is alone takes the pointer and the unsafe step.
//!
//! What that is worth depends on how two accesses meet, if one of them writes:
//!
//! - One is ordered after the other, by a wait, a lock or a count that is published: any sizes will do.
//! - They are not ordered, and name the same bytes with the same size: the reader gets a value that was written.
//! - They are not ordered and overlap otherwise, as when a byte is stored while the word around it is read. Rust's
//!   memory model, like that of C++, gives such a pair no meaning at all. kiln makes none: its own words in shared memory
//!   have one size each, and what they announce is read after them. A *program* makes one when its work races with
//!   itself or with the host, and the simulator has to run even that, to report it.
//!
//! In that last case, and in threads only, kiln relies on what lies below the language: on the machines it runs on
//! (x86-64 and AArch64) each access here is one instruction on aligned bytes, as an atomic of at most eight bytes
//! always is, and memory keeps each byte coherent. So every byte that is read is one that was written, and no more
//! than that is believed: bytes from here are data of the program, or input that is checked before it is used as a length
//! or a place. To stay inside the model, every access would have to be one of whole words, and each store of
//! less a loop of compare and exchange, for the sake of programs that are wrong. The interpreter that checks for undefined
//! behaviour stops at such a pair, so what is run under it does not race.

mod nontemporal_store;

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();

/// A fixed span of memory, readable and writable from any thread.
///
/// Offsets outside of the span are refused (`None` or `false`); nothing is touched then.
///
/// Threads that agree on the size of what they share, or that are ordered, may use it at the same time as they please. Accesses that are
/// neither, and overlap only in part, leave bytes of which each was written by one of them, where the machine keeps bytes coherent; Rust
/// itself does not promise that, so do not build on it.
///
/// ```
/// use kiln_driver::SharedBytes;
///
/// let bytes = SharedBytes::zeroed(16);
/// assert!(bytes.write(3, b"kiln"));
/// let mut back = [0; 4];
/// assert!(bytes.read(3, &mut back));
/// assert_eq!(&back, b"kiln");
/// assert!(!bytes.read(13, &mut back));
/// ```
pub struct SharedBytes {
    start: NonNull<u8>,
    len: usize,
    /// Frees the memory when it is dropped.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: all access through a shared reference is atomic, with sizes as the header says, and the owner is `Send + Sync` itself.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

/// Words on the heap, held by their address: a box would claim them for itself alone each time it is moved.
struct Words(NonNull<[AtomicU64]>);

// SAFETY: it does nothing but free the words, which any thread may do.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the words come from a box that `zeroed` leaked, and this is the only place that takes them back.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl SharedBytes {
    /// Zeros on the heap, aligned to eight bytes.
    pub fn zeroed(len: usize) -> Self {
        let words: Box<[AtomicU64]> = (0..len.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect();
        let words = Words(NonNull::from(Box::leak(words)));
        let start = words.0.cast::<u8>();
        // SAFETY: the words are live until their owner is dropped, and references to them are made only through `start`.
        unsafe { Self::from_raw(start, len, Box::new(words)) }
    }

    /// Memory that something else allocated.
    ///
    /// # Safety
    /// `len` bytes at `start` are readable and writable until `owner` is dropped, and no Rust reference to them is
    /// used while this value lives.
    pub unsafe fn from_raw(start: NonNull<u8>, len: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { start, len, _owner: owner }
    }

    /// Bytes in the span.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first byte. Reading or writing through it is unsafe: say why no other thread accesses them.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies bytes out.
    #[must_use]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        if !self.holds(offset, into.len()) {
            return false;
        }
        let (head, words) = self.split(offset, into.len());
        let end = offset + into.len();
        let (first, rest) = into.split_at_mut(head);
        self.read_bytes(offset, first);
        let (middle, last) = rest.split_at_mut(words * WORD);
        nontemporal_store::fill(middle, |at| self.word(offset + head + at * WORD).load(Ordering::Relaxed));
        self.read_bytes(end - last.len(), last);
        true
    }

    /// Copies bytes in.
    #[must_use]
    pub fn write(&self, offset: usize, from: &[u8]) -> bool {
        if !self.holds(offset, from.len()) {
            return false;
        }
        let (head, words) = self.split(offset, from.len());
        let (first, rest) = from.split_at(head);
        self.write_bytes(offset, first);
        let (middle, last) = rest.split_at(words * WORD);
        for (at, chunk) in middle.chunks_exact(WORD).enumerate() {
            let mut word = [0; WORD];
            word.copy_from_slice(chunk);
            self.word(offset + head + at * WORD).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        self.write_bytes(offset + head + words * WORD, last);
        true
    }

    /// Copies bytes from another span, or from elsewhere in this one if the ranges do not overlap.
    #[must_use]
    pub fn copy_from(&self, offset: usize, from: &Self, from_offset: usize, len: usize) -> bool {
        const STEP: usize = 4096;
        if !self.holds(offset, len) || !from.holds(from_offset, len) {
            return false;
        }
        let mut buffer = [0; STEP];
        let mut done = 0;
        while done < len {
            let step = STEP.min(len - done);
            let part = &mut buffer[..step];
            if !from.read(from_offset + done, part) || !self.write(offset + done, part) {
                return false;
            }
            done += step;
        }
        true
    }

    /// Writes one byte again and again.
    #[must_use]
    pub fn fill(&self, offset: usize, len: usize, byte: u8) -> bool {
        if !self.holds(offset, len) {
            return false;
        }
        let (head, words) = self.split(offset, len);
        let last = offset + head + words * WORD;
        (offset..offset + head)
            .chain(last..offset + len)
            .for_each(|at| self.byte(at).store(byte, Ordering::Relaxed));
        let word = u64::from_ne_bytes([byte; WORD]);
        (0..words).for_each(|at| self.word(offset + head + at * WORD).store(word, Ordering::Relaxed));
        true
    }

    /// The byte at an offset, as an atomic.
    pub fn atomic_u8(&self, offset: usize) -> Option<&AtomicU8> {
        self.holds(offset, 1).then(|| self.byte(offset))
    }

    /// The two bytes at an offset, as an atomic, if they are aligned.
    pub fn atomic_u16(&self, offset: usize) -> Option<&AtomicU16> {
        // SAFETY: `aligned` says that the bytes lie inside the span at an address aligned for the type; the span
        // lives as long as `self`, and all other access to it is atomic too.
        self.aligned(offset, size_of::<u16>()).map(|at| unsafe { AtomicU16::from_ptr(at.cast()) })
    }

    /// The four bytes at an offset, as an atomic, if they are aligned.
    pub fn atomic_u32(&self, offset: usize) -> Option<&AtomicU32> {
        // SAFETY: as for `atomic_u16`.
        self.aligned(offset, size_of::<u32>()).map(|at| unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// The eight bytes at an offset, as an atomic, if they are aligned.
    pub fn atomic_u64(&self, offset: usize) -> Option<&AtomicU64> {
        // SAFETY: as for `atomic_u16`.
        self.aligned(offset, size_of::<u64>()).map(|at| unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    fn aligned(&self, offset: usize, size: usize) -> Option<*mut u8> {
        if !self.holds(offset, size) {
            return None;
        }
        let at = self.start.as_ptr().wrapping_add(offset);
        at.addr().is_multiple_of(size).then_some(at)
    }

    fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Bytes before the first whole word of a range, and whole words in it.
    fn split(&self, offset: usize, len: usize) -> (usize, usize) {
        let address = self.start.as_ptr().addr() + offset;
        let head = (address.wrapping_neg() % WORD).min(len);
        (head, (len - head) / WORD)
    }

    fn read_bytes(&self, offset: usize, into: &mut [u8]) {
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = self.byte(offset + at).load(Ordering::Relaxed);
        }
    }

    fn write_bytes(&self, offset: usize, from: &[u8]) {
        for (at, byte) in from.iter().enumerate() {
            self.byte(offset + at).store(*byte, Ordering::Relaxed);
        }
    }

    fn byte(&self, offset: usize) -> &AtomicU8 {
        debug_assert!(offset < self.len);
        // SAFETY: every caller checked the range with `holds`; a byte needs no alignment; the span lives as long as
        // `self`, and all other access to it is atomic too.
        unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(offset)) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + WORD <= self.len);
        // SAFETY: every caller checked the range with `holds` and found the aligned words in it with `split`; the rest
        // as for `byte`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shared bytes", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_and_length_reads_back_what_was_written() {
        for offset in 0..20 {
            for len in 0..30 {
                let bytes = SharedBytes::zeroed(64);
                let data: Vec<u8> = (1..=len as u8).collect();
                assert!(bytes.write(offset, &data));
                let mut whole = [0; 64];
                assert!(bytes.read(0, &mut whole));
                let mut expected = [0; 64];
                expected[offset..offset + len].copy_from_slice(&data);
                assert_eq!(whole, expected);
                let mut part = vec![0; len];
                assert!(bytes.read(offset, &mut part));
                assert_eq!(part, data);
                assert!(bytes.fill(offset, len, 9));
                expected[offset..offset + len].fill(9);
                assert!(bytes.read(0, &mut whole));
                assert_eq!(whole, expected);
            }
        }
    }

    #[test]
    fn a_range_past_the_end_touches_nothing() {
        let bytes = SharedBytes::zeroed(10);
        assert!(!bytes.write(7, &[1; 4]));
        assert!(!bytes.fill(usize::MAX, 2, 1));
        assert!(!bytes.copy_from(0, &SharedBytes::zeroed(4), 1, 4));
        assert!(
            bytes.atomic_u64(8).is_none() && bytes.atomic_u32(2).is_none() && bytes.atomic_u16(9).is_none()
        );
        let mut back = [7; 10];
        assert!(bytes.read(0, &mut back));
        assert_eq!(back, [0; 10]);
    }

    #[test]
    fn copies_between_spans_keep_their_bytes() {
        let (from, to) = (SharedBytes::zeroed(9000), SharedBytes::zeroed(9000));
        let data: Vec<u8> = (0..9000).map(|at| (at % 251) as u8).collect();
        assert!(from.write(0, &data) && to.copy_from(3, &from, 5, 8990));
        let mut back = vec![0; 8990];
        assert!(to.read(3, &mut back));
        assert_eq!(back, data[5..8995]);
    }

    #[test]
    fn large_reads_keep_their_bytes_wherever_they_start() {
        let len = if cfg!(miri) { 100 } else { (1 << 20) + 77 };
        let bytes = SharedBytes::zeroed(len + 16);
        let data: Vec<u8> = (0..len + 16).map(|at| (at % 253) as u8).collect();
        assert!(bytes.write(0, &data));
        for offset in 0..16 {
            let mut back = vec![0; len + 8];
            let into = offset % 8;
            assert!(bytes.read(offset, &mut back[into..into + len]));
            assert_eq!(back[into..into + len], data[offset..offset + len]);
        }
    }
}
