//! The accesses of one thread of a kernel to device memory, with a cache of recent segments.
//!
//! A port keeps the segments it last hit, so an access that hits one again costs a compare, the access itself and a
//! look at the bits that say what was touched. Bits for reads are collected in the port, a word at a time, and written
//! when the port moves on or is dropped: they are not read before the kernel is done. Bits for writes are written at
//! once, since a read that comes after a write of the same kernel is no read of what was there before.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use kiln_driver::{Access, Protection, SharedBytes};

use crate::check::touched_bytes::{Touched, WORD_BITS, mask};
use crate::memory::memory_view::{AccessCause, AccessFault, MemoryView, SegmentTouched};
use crate::memory::scalar::Scalar;

/// Segments a port remembers; a kernel with more buffers than this looks some of them up again.
const HITS: usize = 4;

/// One thread's way into a [`MemoryView`].
///
/// Accesses are of 1, 2, 4, 8 or 16 bytes at addresses that are multiples of their size.
#[derive(Debug)]
pub struct MemoryPort<'v> {
    view: &'v MemoryView,
    hits: [Option<Hit<'v>>; HITS],
    /// The one hit last.
    last: usize,
}

#[derive(Debug)]
struct Hit<'v> {
    /// The part of the segment of which the launch declared the same.
    start: u64,
    len: u64,
    /// Where the segment begins, and how long it is.
    origin: u64,
    segment_len: u64,
    /// Where the segment begins in `bytes`.
    offset: u64,
    bytes: &'v SharedBytes,
    touched: &'v SegmentTouched,
    /// Whether the access is allowed and declared; what is not takes the slow way.
    readable: bool,
    writable: bool,
    /// Whether no other thread runs this kernel.
    alone: bool,
    /// Reads that are not written down yet: the word of bits they belong to, and which of them.
    read_word: u64,
    read_bits: u64,
}

macro_rules! accesses {
    ($($load:ident, $store:ident, $atomic:ident, $value:ty, $cell:ty;)*) => {$(
        /// Reads a value.
        ///
        /// # Errors
        /// The fault, if nothing can be read there.
        #[inline]
        pub fn $load(&mut self, address: u64) -> Result<$value, AccessFault> {
            const BYTES: u64 = size_of::<$value>() as u64;
            self.access(address, BYTES, Access::Read, |hit, at| {
                let cell = hit.bytes.$atomic((hit.offset + at) as usize)?;
                hit.read(at, BYTES);
                Some(cell.load(Ordering::Relaxed))
            })
        }

        /// Writes a value.
        ///
        /// # Errors
        /// The fault, if nothing can be written there.
        #[inline]
        pub fn $store(&mut self, address: u64, value: $value) -> Result<(), AccessFault> {
            const BYTES: u64 = size_of::<$value>() as u64;
            self.access(address, BYTES, Access::Write, |hit, at| {
                let cell = hit.bytes.$atomic((hit.offset + at) as usize)?;
                hit.written(at, BYTES);
                cell.store(value, Ordering::Relaxed);
                Some(())
            })
        }

        /// The value as an atomic. Atomic accesses of several kernels at once do not race with each other; with
        /// plain ones they do. Asking for it counts as an atomic read and write.
        ///
        /// # Errors
        /// The fault, if nothing can be written there.
        #[inline]
        pub fn $atomic(&mut self, address: u64) -> Result<&'v $cell, AccessFault> {
            const BYTES: u64 = size_of::<$value>() as u64;
            self.access(address, BYTES, Access::ReadWrite, |hit, at| {
                let cell = hit.bytes.$atomic((hit.offset + at) as usize)?;
                hit.changed(at, BYTES);
                Some(cell)
            })
        }
    )*};
}

impl<'v> MemoryPort<'v> {
    pub(crate) fn new(view: &'v MemoryView) -> Self {
        Self { view, hits: [const { None }; HITS], last: 0 }
    }

    accesses! {
        load_u8, store_u8, atomic_u8, u8, AtomicU8;
        load_u16, store_u16, atomic_u16, u16, AtomicU16;
        load_u32, store_u32, atomic_u32, u32, AtomicU32;
        load_u64, store_u64, atomic_u64, u64, AtomicU64;
    }

    /// Reads sixteen bytes; not as one step, as on hardware.
    ///
    /// # Errors
    /// The fault, if they cannot be read.
    pub fn load_u128(&mut self, address: u64) -> Result<u128, AccessFault> {
        self.check_pair(address, Access::Read)?;
        let low = self.load_u64(address)?;
        let high = self.load_u64(address.wrapping_add(8))?;
        Ok(u128::from(low) | u128::from(high) << 64)
    }

    /// Writes sixteen bytes; not as one step, as on hardware.
    ///
    /// # Errors
    /// The fault, if they cannot be written.
    pub fn store_u128(&mut self, address: u64, value: u128) -> Result<(), AccessFault> {
        self.check_pair(address, Access::Write)?;
        self.store_u64(address, value as u64)?;
        self.store_u64(address.wrapping_add(8), (value >> 64) as u64)
    }

    fn check_pair(&self, address: u64, access: Access) -> Result<(), AccessFault> {
        if address.is_multiple_of(16) {
            return Ok(());
        }
        Err(self.view.fail(AccessFault { address, bytes: 16, access, cause: AccessCause::Misaligned }))
    }

    /// Reads a value of any scalar type.
    ///
    /// # Errors
    /// The fault, if it cannot be read.
    #[inline]
    pub fn load<T: Scalar>(&mut self, address: u64) -> Result<T, AccessFault> {
        T::load(self, address)
    }

    /// Writes a value of any scalar type.
    ///
    /// # Errors
    /// The fault, if it cannot be written.
    #[inline]
    pub fn store<T: Scalar>(&mut self, address: u64, value: T) -> Result<(), AccessFault> {
        value.store(self, address)
    }

    /// Makes an access in the segment hit last or, if it lies elsewhere, in the one that holds it.
    #[inline(always)]
    fn access<R>(
        &mut self,
        address: u64,
        bytes: u64,
        access: Access,
        make: impl Fn(&mut Hit<'v>, u64) -> Option<R>,
    ) -> Result<R, AccessFault> {
        if let Some((hit, at)) = self.reach(address, bytes, access)
            && let Some(result) = make(hit, at)
        {
            return Ok(result);
        }
        self.turn_to(address, bytes, access)?;
        let made = self.reach(address, bytes, access).and_then(|(hit, at)| make(hit, at));
        let made = made
            .or_else(|| self.reach_undeclared(address, bytes, access).and_then(|(hit, at)| make(hit, at)));
        let cause = AccessCause::Misaligned;
        made.ok_or_else(|| self.view.fail(AccessFault { address, bytes, access, cause }))
    }

    /// The segment hit last, if it holds the access, and where in it.
    #[inline(always)]
    fn reach(&mut self, address: u64, bytes: u64, access: Access) -> Option<(&mut Hit<'v>, u64)> {
        let hit = self.hits[self.last % HITS].as_mut()?;
        let at = address.wrapping_sub(hit.start);
        let allowed = if access.writes() { hit.writable } else { hit.readable };
        let inside = at < hit.len && hit.len - at >= bytes && allowed;
        let place = address.wrapping_sub(hit.origin);
        inside.then_some((hit, place))
    }

    /// Makes the segment that holds an access the one hit last.
    #[cold]
    fn turn_to(&mut self, address: u64, bytes: u64, access: Access) -> Result<(), AccessFault> {
        let fail = |cause| Err(self.view.fail(AccessFault { address, bytes, access, cause }));
        if !address.is_multiple_of(bytes) {
            return fail(AccessCause::Misaligned);
        }
        let holds = |hit: &Hit<'v>| {
            let allowed = if access.writes() { hit.writable } else { hit.readable };
            address.wrapping_sub(hit.start) < hit.len && allowed
        };
        if let Some(found) = self.hits.iter().position(|hit| hit.as_ref().is_some_and(holds))
            && found != self.last
        {
            self.last = found;
            return Ok(());
        }
        let Some(index) = self.view.map().index_of(address) else { return fail(AccessCause::Unmapped) };
        let segment = &self.view.map().segments()[index];
        if segment.end - address < bytes {
            return fail(AccessCause::Unmapped);
        }
        let locked = segment.protection == Protection::Read;
        if access.writes() && locked {
            return fail(AccessCause::ReadOnly);
        }
        let (range, declaration) = self.view.declared_around(address, segment);
        let hit = Hit {
            start: range.start,
            len: range.end - range.start,
            origin: segment.start,
            segment_len: segment.end - segment.start,
            offset: segment.offset,
            bytes: &segment.physical.bytes,
            touched: self.view.touched_in(index),
            readable: declaration.covers(Access::Read),
            writable: declaration.covers(Access::Write) && !locked,
            alone: self.view.is_alone(),
            read_word: 0,
            read_bits: 0,
        };
        self.last = (self.last + 1) % HITS;
        self.hits[self.last] = Some(hit);
        Ok(())
    }

    /// Notes an access that the launch did not declare; memory is mapped there, so it is made.
    #[cold]
    fn reach_undeclared(&mut self, address: u64, bytes: u64, access: Access) -> Option<(&mut Hit<'v>, u64)> {
        self.view.note_undeclared(address, bytes, access);
        let hit = self.hits[self.last % HITS].as_mut()?;
        let at = address.checked_sub(hit.origin)?;
        (at.checked_add(bytes)? <= hit.segment_len).then_some((hit, at))
    }
}

impl Hit<'_> {
    /// A read of what this kernel wrote itself is covered by the write.
    #[inline]
    fn read(&mut self, at: u64, bytes: u64) {
        let (word, bits) = (at / WORD_BITS, mask(at, bytes));
        if word == self.read_word && self.read_bits & bits == bits {
            return;
        }
        if self.touched.writes.get().is_some_and(|writes| writes.has_in_word(at, bytes)) {
            return;
        }
        if word != self.read_word {
            self.write_reads_down();
            self.read_word = word;
        }
        self.read_bits |= bits;
    }

    #[inline]
    fn written(&self, at: u64, bytes: u64) {
        let writes = self.touched.writes.get_or_init(|| Touched::new(self.segment_len));
        if self.alone {
            writes.set_alone(at, bytes);
        } else {
            writes.set_in_word(at, bytes);
        }
    }

    #[inline]
    fn changed(&self, at: u64, bytes: u64) {
        self.touched.atomics.get_or_init(|| Touched::new(self.segment_len)).set_in_word(at, bytes);
    }

    fn write_reads_down(&mut self) {
        let bits = std::mem::take(&mut self.read_bits);
        if bits != 0 {
            let reads = self.touched.reads.get_or_init(|| Touched::new(self.segment_len));
            reads.set_bits(self.read_word, bits, self.alone);
        }
    }
}

impl Drop for Hit<'_> {
    fn drop(&mut self) {
        self.write_reads_down();
    }
}
