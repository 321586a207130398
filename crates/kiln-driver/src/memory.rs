//! Device memory: addresses, pages, and what is asked for.

use std::fmt;

use crate::handle::{MemoryId, ReservationId, StreamId};
use crate::suballocation::MemoryPart;

/// An address on the device, as a kernel sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceAddress(pub u64);

impl fmt::Debug for DeviceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DeviceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A range of addresses to reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReserveRequest {
    /// A multiple of the page granularity.
    pub bytes: u64,
    /// The first address, where it must be this one; a worker that takes over asks for the old addresses.
    pub at: Option<DeviceAddress>,
}

/// Addresses that are reserved; nothing is behind them until pages are mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Its name.
    pub id: ReservationId,
    /// The first address.
    pub address: DeviceAddress,
    /// Its length.
    pub bytes: u64,
}

/// Physical memory to create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// A multiple of the page granularity.
    pub bytes: u64,
    /// Whether it can be handed to another process.
    pub exportable: bool,
}

/// What kernels may do to mapped pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protection {
    /// Reads only; a write is a fault.
    Read,
    /// Anything.
    ReadWrite,
}

/// Memory to allocate, mapped and ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MemoryRequest {
    /// From the device at once; slow, and it may wait for running work.
    Direct {
        /// At least 1.
        bytes: u64,
    },
    /// From the driver's pool, in the order of a stream: the memory may be used by work queued after this call on
    /// that stream, or ordered after it.
    Pool {
        /// At least 1.
        bytes: u64,
        /// The stream.
        stream: StreamId,
    },
    /// Memory that another library allocated.
    Foreign(ForeignMemory),
    /// Part of memory that exists already: a block that a resource hands out. Only a device that checks accesses
    /// ([`Features::access_checks`](crate::Features::access_checks)) takes it.
    Part(MemoryPart),
}

/// Device memory that another library owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForeignMemory {
    address: DeviceAddress,
    bytes: u64,
}

impl ForeignMemory {
    /// Memory of another library, to be named in commands.
    ///
    /// # Safety
    /// `bytes` bytes at `address` are device memory of the device it is given to, and stay so until the driver is
    /// told to free the handle, which leaves the memory itself alone.
    pub unsafe fn new(address: DeviceAddress, bytes: u64) -> Self {
        Self { address, bytes }
    }

    /// The first address.
    pub fn address(self) -> DeviceAddress {
        self.address
    }

    /// Its length.
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

/// Memory that can be used at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceMemory {
    /// Its name.
    pub id: MemoryId,
    /// The first address.
    pub address: DeviceAddress,
    /// Its length.
    pub bytes: u64,
}
