//! What a kernel sees of device memory: every access is checked, and remembered for the race check.
//!
//! The view is a snapshot of the address map, taken when the kernel starts. Any number of threads may read and write
//! through it; each makes a [`MemoryPort`], which keeps the segment it last hit, so that a run of accesses to one block
//! costs a compare each. Which bytes were touched is kept as bits and handed to the checker when the kernel is done.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use kiln_driver::{Access, Protection};

use crate::check::declared_memory::{Declaration, LaunchFootprint};
use crate::check::touched_bytes::Touched;
use crate::check::undefined_bytes::UndefinedBytes;
use crate::memory::address_map::{AddressMap, Segment};
use crate::memory::thread_memory_access::MemoryPort;

/// Device memory as one kernel sees it.
#[derive(Debug)]
pub struct MemoryView {
    map: Arc<AddressMap>,
    touched: Box<[SegmentTouched]>,
    fault: OnceLock<AccessFault>,
    /// Whether one thread runs the whole kernel.
    alone: bool,
    /// What the launch may touch; none if it did not say.
    footprint: Option<Arc<LaunchFootprint>>,
    /// The place of the launch among all submissions, if reads of bytes that were never written are reported.
    checks_undefined: Option<u64>,
    /// Whether the code that runs reports them itself, read by read.
    undefined_checked_in_code: OnceLock<()>,
    /// Accesses of host kernels that were not declared: the first read and the first write.
    strays: [OnceLock<Stray>; 2],
}

/// An access that the launch did not declare.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) access: Access,
    /// Why it was not declared, in words that complete "which is ...".
    pub(crate) near: String,
}

#[derive(Debug, Default)]
pub(crate) struct SegmentTouched {
    pub(crate) reads: OnceLock<Touched>,
    pub(crate) writes: OnceLock<Touched>,
    pub(crate) atomics: OnceLock<Touched>,
    /// Bytes that were written with contents that are undefined.
    pub(crate) undefined: OnceLock<UndefinedBytes>,
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
    pub(crate) fn new(
        map: Arc<AddressMap>,
        alone: bool,
        checks_undefined: Option<u64>,
        footprint: Option<Arc<LaunchFootprint>>,
    ) -> Self {
        let touched = map.segments().iter().map(|_| SegmentTouched::default()).collect();
        Self {
            map,
            touched,
            fault: OnceLock::new(),
            alone,
            footprint,
            checks_undefined,
            undefined_checked_in_code: OnceLock::new(),
            strays: Default::default(),
        }
    }

    /// The place of the launch among all submissions, if reads of bytes that were never written are reported.
    pub(crate) fn checks_undefined(&self) -> Option<u64> {
        self.checks_undefined
    }

    /// The code that runs reports such reads itself, with its lines.
    pub(crate) fn check_undefined_in_code(&self) {
        self.undefined_checked_in_code.get_or_init(|| ());
    }

    /// Whether such reads are still to be looked for when the kernel is done.
    pub(crate) fn checks_undefined_at_end(&self) -> bool {
        self.checks_undefined.is_some() && self.undefined_checked_in_code.get().is_none()
    }

    /// What the launch may touch; none if it did not say.
    pub(crate) fn footprint(&self) -> Option<&LaunchFootprint> {
        self.footprint.as_deref()
    }

    /// The widest range of a segment around an address of which the launch declared the same.
    pub(crate) fn declared_around(&self, address: u64, segment: &Segment) -> (Range<u64>, Declaration) {
        let whole = segment.start..segment.end;
        match &self.footprint {
            None => (whole, Declaration::ReadWrite),
            Some(footprint) => footprint.around(address, whole),
        }
    }

    /// The parts of a range of a segment that the launch declared; all of it if the launch said nothing.
    pub(crate) fn declared_parts(&self, segment: &Segment, bytes: Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = segment.start + bytes.start;
        let end = segment.start + bytes.end;
        while at < end {
            let (range, declaration) = self.declared_around(at, segment);
            let stop = range.end.min(end);
            if declaration != Declaration::Nothing {
                parts.push(at - segment.start..stop - segment.start);
            }
            at = stop;
        }
        parts
    }

    /// Notes an access of a host kernel that the launch did not declare.
    pub(crate) fn note_undeclared(&self, address: u64, bytes: u64, access: Access) {
        let Some(footprint) = &self.footprint else { return };
        let slot = &self.strays[usize::from(access.writes())];
        let range = address..address.saturating_add(bytes);
        if slot.get().is_none()
            && let Some(near) = footprint.explain(range, access)
        {
            slot.get_or_init(|| Stray { address, bytes, access, near });
        }
    }

    /// Accesses of host kernels that the launch did not declare.
    pub(crate) fn strays(&self) -> impl Iterator<Item = &Stray> {
        self.strays.iter().filter_map(OnceLock::get)
    }

    /// A way in for one thread.
    pub fn port(&self) -> MemoryPort<'_> {
        MemoryPort::new(self)
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

    pub(crate) fn map(&self) -> &AddressMap {
        &self.map
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    pub(crate) fn touched_in(&self, segment: usize) -> &SegmentTouched {
        &self.touched[segment]
    }

    /// The first access that was not allowed.
    pub(crate) fn fault(&self) -> Option<AccessFault> {
        self.fault.get().copied()
    }

    /// Every segment that was touched, with the bits.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&Segment, &SegmentTouched)> {
        self.map.segments().iter().zip(&self.touched).filter(|(_, touched)| touched.any())
    }

    /// How many bytes were touched, in whatever way.
    pub(crate) fn touched_bytes(&self) -> u64 {
        let kinds = |touched: &SegmentTouched| {
            [&touched.reads, &touched.writes, &touched.atomics]
                .map(|bits| bits.get().map_or(0, Touched::count))
        };
        self.touched.iter().flat_map(kinds).sum()
    }

    fn pieces(
        &self,
        address: u64,
        bytes: u64,
        access: Access,
        mut each: impl FnMut(&Segment, &SegmentTouched, u64, Range<usize>) -> bool,
    ) -> Result<(), AccessFault> {
        let end = address.saturating_add(bytes);
        self.note_undeclared(address, bytes, access);
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
    pub(crate) fn fail(&self, fault: AccessFault) -> AccessFault {
        *self.fault.get_or_init(|| fault)
    }
}

impl SegmentTouched {
    fn any(&self) -> bool {
        self.reads.get().is_some() || self.writes.get().is_some() || self.atomics.get().is_some()
    }

    /// Runs of bytes that were read before this kernel wrote them.
    pub(crate) fn read_runs(&self) -> Vec<Range<u64>> {
        self.reads.get().map(Touched::runs).unwrap_or_default()
    }

    /// Runs of bytes that were updated atomically and not written by this kernel.
    pub(crate) fn unwritten_atomic_runs(&self) -> Vec<Range<u64>> {
        match self.writes.get() {
            Some(writes) => self.atomic_runs().into_iter().flat_map(|run| writes.missing(run)).collect(),
            None => self.atomic_runs(),
        }
    }

    pub(crate) fn written_runs(&self) -> Vec<Range<u64>> {
        self.writes.get().map(Touched::runs).unwrap_or_default()
    }

    pub(crate) fn atomic_runs(&self) -> Vec<Range<u64>> {
        self.atomics.get().map(Touched::runs).unwrap_or_default()
    }
}
