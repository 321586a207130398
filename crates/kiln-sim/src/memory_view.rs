//! What a kernel sees of device memory: every access is checked, and remembered for the race check.
//!
//! The view is a snapshot of the address map, taken when the kernel starts. Any number of threads may read and write
//! through it; each makes a [`Port`], which keeps the segment it last hit, so that a run of accesses to one block
//! costs a compare each. Which bytes were touched is kept as bits and handed to the checker when the kernel is done.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kiln_driver::{Access, Protection, SharedBytes};

use crate::address_map::{AddressMap, Segment};
use crate::scalar::Scalar;
use crate::touched::Touched;

/// Device memory as one kernel sees it.
#[derive(Debug)]
pub struct MemoryView {
    map: Arc<AddressMap>,
    touched: Box<[SegmentTouched]>,
    fault: OnceLock<AccessFault>,
}

#[derive(Debug, Default)]
pub(crate) struct SegmentTouched {
    reads: OnceLock<Touched>,
    writes: OnceLock<Touched>,
    atomics: OnceLock<Touched>,
}

/// An access the device does not allow. The launch is over then, and the device is lost, as on hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessFault {
    /// The first byte that could not be accessed.
    pub address: u64,
    /// How many bytes were wanted.
    pub bytes: u64,
    /// What was wanted.
    pub access: Access,
    /// What was wrong.
    pub cause: AccessCause,
}

/// Why an access was not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessCause {
    /// No memory lies there.
    Unmapped,
    /// The memory may only be read.
    ReadOnly,
    /// The address is no multiple of the size.
    Misaligned,
}

impl fmt::Display for AccessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, bytes, access, cause } = self;
        let cause = match cause {
            AccessCause::Unmapped => "where no memory is",
            AccessCause::ReadOnly => "in memory that may only be read",
            AccessCause::Misaligned => "which is no multiple of its size",
        };
        write!(f, "a {access} of {bytes} bytes at {address:#x}, {cause}")
    }
}

impl MemoryView {
    pub(crate) fn new(map: Arc<AddressMap>) -> Self {
        let touched = map.segments().iter().map(|_| SegmentTouched::default()).collect();
        Self { map, touched, fault: OnceLock::new() }
    }

    /// A way in for one thread.
    pub fn port(&self) -> Port<'_> {
        Port { view: self, hit: None }
    }

    /// Copies bytes out; they may reach over mappings that lie side by side.
    ///
    /// # Errors
    /// The fault, if not all of them can be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), AccessFault> {
        self.pieces(address, into.len() as u64, Access::Read, |segment, touched, place, part| {
            let reads = touched.reads.get_or_init(|| Touched::new(segment.end - segment.start));
            let range = place - segment.offset..place - segment.offset + part.len() as u64;
            match touched.writes.get() {
                Some(writes) => writes.missing(range).into_iter().for_each(|range| reads.set(range)),
                None => reads.set(range),
            }
            let into = into.get_mut(part);
            into.is_some_and(|into| segment.physical.bytes.read(place as usize, into))
        })
    }

    /// Copies bytes in; they may reach over mappings that lie side by side.
    ///
    /// # Errors
    /// The fault, if not all of them can be written; those before it are.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), AccessFault> {
        self.pieces(address, from.len() as u64, Access::Write, |segment, touched, place, part| {
            let writes = touched.writes.get_or_init(|| Touched::new(segment.end - segment.start));
            writes.set(place - segment.offset..place - segment.offset + part.len() as u64);
            from.get(part).is_some_and(|from| segment.physical.bytes.write(place as usize, from))
        })
    }

    /// The first access that was not allowed.
    pub(crate) fn fault(&self) -> Option<AccessFault> {
        self.fault.get().copied()
    }

    /// Every segment that was touched, with the bits.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&Segment, &SegmentTouched)> {
        self.map.segments().iter().zip(&self.touched).filter(|(_, touched)| touched.any())
    }

    fn pieces(
        &self,
        address: u64,
        bytes: u64,
        access: Access,
        mut each: impl FnMut(&Segment, &SegmentTouched, u64, Range<usize>) -> bool,
    ) -> Result<(), AccessFault> {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let cause = match self.map.index_of(at) {
                None => AccessCause::Unmapped,
                Some(index) => {
                    let segment = &self.map.segments()[index];
                    let stop = end.min(segment.end);
                    let part = (at - address) as usize..(stop - address) as usize;
                    if access.writes() && segment.protection == Protection::Read {
                        AccessCause::ReadOnly
                    } else if each(segment, &self.touched[index], segment.place_of(at), part) {
                        at = stop;
                        continue;
                    } else {
                        AccessCause::Unmapped
                    }
                }
            };
            return Err(self.fail(AccessFault { address: at, bytes: end - at, access, cause }));
        }
        Ok(())
    }

    #[cold]
    fn fail(&self, fault: AccessFault) -> AccessFault {
        *self.fault.get_or_init(|| fault)
    }
}

impl SegmentTouched {
    fn any(&self) -> bool {
        self.reads.get().is_some() || self.writes.get().is_some() || self.atomics.get().is_some()
    }

    /// Runs of bytes that were read before this kernel wrote them.
    pub(crate) fn reads(&self) -> Vec<Range<u64>> {
        self.reads.get().map(Touched::runs).unwrap_or_default()
    }

    pub(crate) fn writes(&self) -> Vec<Range<u64>> {
        self.writes.get().map(Touched::runs).unwrap_or_default()
    }

    pub(crate) fn atomics(&self) -> Vec<Range<u64>> {
        self.atomics.get().map(Touched::runs).unwrap_or_default()
    }
}

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
        let Some(index) = self.view.map.index_of(address) else { return fail(AccessCause::Unmapped) };
        let segment = &self.view.map.segments()[index];
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
            touched: &self.view.touched[index],
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
