//! `Command`: copies, fills, launches, waits and signals as data.
//!
//! A [`Command`] is everything a stream can do. The same value is what a simulator schedules, what travels to a
//! worker process, what a graph is made of and what a call trace records, so it holds handles and numbers and
//! never a pointer into the host. Device memory is named by the block it lies in and an offset, so a driver can
//! refuse a copy past the end; inside a launch's packed arguments addresses are plain numbers, which is why
//! building a [`Launch`] takes the one unsafe step ([`Vouched`]).

use std::fmt;

use crate::error::Error;
use crate::handle::{EventId, FunctionId, GraphId, HostId, MemoryId, ReservationId};
use crate::host_memory::Access;
use crate::memory::DeviceAddress;

/// One step of work on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Command<'a> {
    /// Copies bytes; the two ranges do not overlap. Zero bytes is allowed and does nothing.
    Copy {
        /// Where the bytes come from.
        from: Place,
        /// Where they go.
        to: Place,
        /// How many.
        bytes: u64,
    },
    /// Writes a pattern again and again.
    Fill {
        /// Where the first element goes; aligned to the pattern.
        to: DevicePlace,
        /// What is written.
        pattern: Pattern,
        /// How often. Zero is allowed and does nothing.
        count: u64,
    },
    /// Runs a kernel.
    Launch(LaunchCommand<'a>),
    /// Records an event: it is done once everything queued before on this stream is done.
    Signal(EventId),
    /// Holds back what follows on this stream until the event, as last signalled before this call, is done. An
    /// event that was never signalled holds back nothing.
    Wait(EventId),
    /// Runs a graph.
    Graph(GraphId),
}

impl Command<'_> {
    /// One word for messages and counters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Copy { .. } => "copy",
            Self::Fill { .. } => "fill",
            Self::Launch(_) => "launch",
            Self::Signal(_) => "signal",
            Self::Wait(_) => "wait",
            Self::Graph(_) => "graph",
        }
    }
}

/// One end of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// In memory of the device that runs the copy.
    Device(DevicePlace),
    /// In a host block.
    Host {
        /// The block.
        block: HostId,
        /// Bytes from its start.
        offset: u64,
    },
    /// In memory of another device.
    Peer(DevicePlace),
}

/// A place in device memory: a block and an offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DevicePlace {
    /// The block it lies in.
    pub base: Base,
    /// Bytes from the start of the block.
    pub offset: u64,
}

/// What a [`DevicePlace`] counts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// Memory that was allocated, or a variable of a module.
    Memory(MemoryId),
    /// A reserved range with pages mapped into it.
    Reservation(ReservationId),
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(id) => id.fmt(f),
            Self::Reservation(id) => id.fmt(f),
        }
    }
}

impl From<MemoryId> for DevicePlace {
    fn from(id: MemoryId) -> Self {
        Self { base: Base::Memory(id), offset: 0 }
    }
}

impl From<ReservationId> for DevicePlace {
    fn from(id: ReservationId) -> Self {
        Self { base: Base::Reservation(id), offset: 0 }
    }
}

impl DevicePlace {
    /// The place `bytes` further on.
    ///
    /// An offset that would pass 2^64 stays at the largest one, which lies outside of every block and is
    /// therefore refused where it is used.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }
}

/// What [`Command::Fill`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pattern {
    /// One byte.
    U8(u8),
    /// Two bytes, in the device's order (little endian).
    U16(u16),
    /// Four bytes, likewise.
    U32(u32),
}

impl Pattern {
    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8(_) => 1,
            Self::U16(_) => 2,
            Self::U32(_) => 4,
        }
    }
}

/// Three extents or coordinates; the first is the fastest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim3 {
    /// Fastest.
    pub x: u32,
    /// Middle.
    pub y: u32,
    /// Slowest.
    pub z: u32,
}

impl Dim3 {
    /// Three extents.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The product, which fits 96 bits at most.
    pub fn count(self) -> u128 {
        u128::from(self.x) * u128::from(self.y) * u128::from(self.z)
    }

    /// Refuses a grid or a block, as `what` says, with an extent that is 0 or larger than that of `most`.
    ///
    /// # Errors
    /// Invalid, naming both.
    #[inline]
    pub fn check_extents(self, call: &'static str, what: &'static str, most: Self) -> Result<(), Error> {
        let fits = |extent: u32, most: u32| (1..=most).contains(&extent);
        if fits(self.x, most.x) && fits(self.y, most.y) && fits(self.z, most.z) {
            return Ok(());
        }
        let what = format!("a {what} of {self}, where at most {most} is allowed and at least 1");
        Err(Error::invalid(call, what, "split the work differently"))
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self::new(x, y, z)
    }
}

impl From<[u32; 1]> for Dim3 {
    fn from([x]: [u32; 1]) -> Self {
        Self::new(x, 1, 1)
    }
}

impl From<[u32; 2]> for Dim3 {
    fn from([x, y]: [u32; 2]) -> Self {
        Self::new(x, y, 1)
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Self::new(x, y, z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.x, self.y, self.z)
    }
}

/// A kernel with everything it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchCommand<'a> {
    /// The kernel.
    pub function: FunctionId,
    /// Blocks in the grid.
    pub grid: Dim3,
    /// Threads in a block.
    pub block: Dim3,
    /// Blocks in a cluster, where clusters are used.
    pub cluster: Option<Dim3>,
    /// Shared memory beyond what the kernel declares.
    pub dynamic_shared_bytes: u32,
    /// Whether all blocks must be resident at once, so that they can wait for each other.
    pub cooperative: bool,
    /// The parameters, packed at the offsets the kernel's signature gives.
    pub arguments: &'a [u8],
    /// All memory outside of its module that the kernel may touch; `None` where the caller does not know. A device that checks
    /// accesses ([`Features::access_checks`](crate::Features::access_checks)) reports what a kernel touches besides; others do not
    /// look at it.
    pub declared: Option<&'a [DeclaredSpan]>,
    /// The word that this launch may run.
    pub vouched: Vouched,
}

/// Bytes of device memory that a launch may touch.
///
/// They are named by their address, as the kernel itself names them: the memory outlives the launch, so no handle has to be looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeclaredSpan {
    /// The first of them.
    pub address: DeviceAddress,
    /// How many.
    pub bytes: u64,
    /// What may be done to them. Bytes that are declared as written may be read, too: a kernel may read what it wrote.
    pub access: Access,
    /// The parameter that points to them, counted from 0; `None` for memory that is reached in another way.
    pub parameter: Option<u16>,
}

/// The word that a launch may run.
///
/// A kernel gets plain addresses in its packed arguments and can write whatever the device can reach, pinned host
/// memory included. Saying that it will not is the one unsafe step of the driver interface, and it is taken by the caller who knows
/// the kernel, above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouched(());

impl Vouched {
    /// Gives the word.
    ///
    /// # Safety
    /// The arguments have the layout of the kernel's parameters. The kernel, run with these arguments and this
    /// shape, reads and writes only inside memory that stays mapped until it is done, that no host code holds a
    /// Rust reference to meanwhile, and whose contents are not relied upon by the host to be valid for a type.
    pub unsafe fn new() -> Self {
        Self(())
    }
}

/// The number of a submission on its stream; the first is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Submission(pub u64);

impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "submission {}", self.0)
    }
}
