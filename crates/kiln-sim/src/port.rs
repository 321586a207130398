//! One thread's accesses to device memory, fast.
//!
//! A port keeps the segment it last hit, so an access that hits it again costs a compare, the access itself and a look
//! at the bits that say what was touched.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use kiln_driver::{Access, Protection, SharedBytes};

use crate::memory_view::{AccessCause, AccessFault, MemoryView, SegmentTouched};
use crate::scalar::Scalar;
use crate::touched::Touched;

/// One thread's way into a [`MemoryView`].
///
/// Accesses are of 1, 2, 4, 8 or 16 bytes at addresses that are multiples of their size.
#[derive(Debug)]
pub struct Port<'v> {
    view: &'v MemoryView,
    hit: Option<Hit<'v>>,
}

#[derive(Clone, Copy, Debug)]
struct Hit<'v> {
    start: u64,
    len: u64,
    /// Where the segment begins in `bytes`.
    offset: u64,
    bytes: &'v SharedBytes,
    touched: &'v SegmentTouched,
    writable: bool,
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
            let (hit, at) = self.reach(address, BYTES, Access::Read)?;
            match hit.bytes.$atomic((hit.offset + at) as usize) {
                Some(cell) => {
                    hit.read(at, BYTES);
                    Ok(cell.load(Ordering::Relaxed))
                }
                None => Err(self.misaligned(address, BYTES, Access::Read)),
            }
        }

        /// Writes a value.
        ///
        /// # Errors
        /// The fault, if nothing can be written there.
        #[inline]
        pub fn $store(&mut self, address: u64, value: $value) -> Result<(), AccessFault> {
            const BYTES: u64 = size_of::<$value>() as u64;
            let (hit, at) = self.reach(address, BYTES, Access::Write)?;
            match hit.bytes.$atomic((hit.offset + at) as usize) {
                Some(cell) => {
                    hit.written(at, BYTES);
                    cell.store(value, Ordering::Relaxed);
                    Ok(())
                }
                None => Err(self.misaligned(address, BYTES, Access::Write)),
            }
        }

        /// The value as an atomic. Atomic accesses of several kernels at once do not race with each other; with
        /// plain ones they do. Asking for it counts as an atomic read and write.
        ///
        /// # Errors
        /// The fault, if nothing can be written there.
        #[inline]
        pub fn $atomic(&mut self, address: u64) -> Result<&'v $cell, AccessFault> {
            const BYTES: u64 = size_of::<$value>() as u64;
            let (hit, at) = self.reach(address, BYTES, Access::ReadWrite)?;
            match hit.bytes.$atomic((hit.offset + at) as usize) {
                Some(cell) => {
                    hit.changed(at, BYTES);
                    Ok(cell)
                }
                None => Err(self.misaligned(address, BYTES, Access::ReadWrite)),
            }
        }
    )*};
}

impl<'v> Port<'v> {
    pub(crate) fn new(view: &'v MemoryView) -> Self {
        Self { view, hit: None }
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
        if !address.is_multiple_of(16) {
            return Err(self.misaligned(address, 16, Access::Read));
        }
        let low = self.load_u64(address)?;
        let high = self.load_u64(address.wrapping_add(8))?;
        Ok(u128::from(low) | u128::from(high) << 64)
    }

    /// Writes sixteen bytes; not as one step, as on hardware.
    ///
    /// # Errors
    /// The fault, if they cannot be written.
    pub fn store_u128(&mut self, address: u64, value: u128) -> Result<(), AccessFault> {
        if !address.is_multiple_of(16) {
            return Err(self.misaligned(address, 16, Access::Write));
        }
        self.store_u64(address, value as u64)?;
        self.store_u64(address.wrapping_add(8), (value >> 64) as u64)
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

    /// The segment that holds an access, and where in it.
    #[inline]
    fn reach(&mut self, address: u64, bytes: u64, access: Access) -> Result<(Hit<'v>, u64), AccessFault> {
        if let Some(hit) = self.hit {
            let at = address.wrapping_sub(hit.start);
            if at < hit.len && hit.len - at >= bytes && (hit.writable || !access.writes()) {
                return Ok((hit, at));
            }
        }
        self.look_up(address, bytes, access)
    }

    #[cold]
    fn look_up(&mut self, address: u64, bytes: u64, access: Access) -> Result<(Hit<'v>, u64), AccessFault> {
        let fail = |cause| Err(self.view.fail(AccessFault { address, bytes, access, cause }));
        let Some(index) = self.view.map().index_of(address) else { return fail(AccessCause::Unmapped) };
        let segment = &self.view.map().segments()[index];
        if segment.end - address < bytes {
            let cause =
                if address.is_multiple_of(bytes) { AccessCause::Unmapped } else { AccessCause::Misaligned };
            return fail(cause);
        }
        let hit = Hit {
            start: segment.start,
            len: segment.end - segment.start,
            offset: segment.offset,
            bytes: &segment.physical.bytes,
            touched: self.view.touched_in(index),
            writable: segment.protection == Protection::ReadWrite,
        };
        if access.writes() && !hit.writable {
            return fail(AccessCause::ReadOnly);
        }
        self.hit = Some(hit);
        Ok((hit, address - segment.start))
    }

    #[cold]
    fn misaligned(&self, address: u64, bytes: u64, access: Access) -> AccessFault {
        self.view.fail(AccessFault { address, bytes, access, cause: AccessCause::Misaligned })
    }
}

impl Hit<'_> {
    /// A read of what this kernel wrote itself is covered by the write.
    #[inline]
    fn read(&self, at: u64, bytes: u64) {
        let reads = self.touched.reads.get_or_init(|| Touched::new(self.len));
        if !reads.has_in_word(at, bytes)
            && !self.touched.writes.get().is_some_and(|writes| writes.has_in_word(at, bytes))
        {
            reads.set_in_word(at, bytes);
        }
    }

    #[inline]
    fn written(&self, at: u64, bytes: u64) {
        self.touched.writes.get_or_init(|| Touched::new(self.len)).set_in_word(at, bytes);
    }

    #[inline]
    fn changed(&self, at: u64, bytes: u64) {
        self.touched.atomics.get_or_init(|| Touched::new(self.len)).set_in_word(at, bytes);
    }
}
