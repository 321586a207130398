//! Where a heap's addresses come from.

use kiln_driver::{DeviceAddress, Driver, Place};

use super::arena::Placement;
use super::chunk_backing::ChunkBacking;
use super::page_backing::{PAGE_BYTES, PageBacking};
use super::size_class::UNIT_BYTES;
use crate::budget::BudgetShortage;
use crate::error::MemoryRefusal;
use crate::out_of_memory::Exhausted;
use crate::try_reserve::HostOutOfMemory;

/// A source of addresses with memory behind them.
#[expect(clippy::large_enum_variant, reason = "a heap has one and does not move it")]
pub(crate) enum Backing {
    /// Pages that can be mapped anywhere in one window.
    Pages(PageBacking),
    /// Chunks, each with separate addresses.
    Chunks(ChunkBacking),
}

/// Memory that an arena needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Growth {
    pub(crate) arena: u32,
    /// What has to be added.
    pub(crate) missing_units: u64,
    /// What was asked for.
    pub(crate) request_units: u64,
    /// What the arena has already.
    pub(crate) owned_units: u64,
}

/// Addresses with memory behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) units: u64,
    pub(crate) edge: Placement,
}

/// Why there is no more.
#[derive(Clone, Debug)]
pub(crate) enum GrowError {
    /// The budget is used up.
    Budget(BudgetShortage),
    /// The window of addresses is used up.
    Window { bytes: u64 },
    /// The driver refused.
    Driver(kiln_driver::Error),
    /// The host has no memory for the tables.
    Host(HostOutOfMemory),
}

impl From<HostOutOfMemory> for GrowError {
    fn from(error: HostOutOfMemory) -> Self {
        Self::Host(error)
    }
}

impl GrowError {
    /// Whether a smaller request, or freeing something, may help.
    pub(crate) fn is_shortage(&self) -> bool {
        match self {
            Self::Budget(_) | Self::Window { .. } => true,
            Self::Driver(error) => error.is_oom(),
            Self::Host(_) => false,
        }
    }
}

impl GrowError {
    /// Writes down what refused.
    pub(crate) fn write_into(self, exhausted: &mut Exhausted) {
        match self {
            Self::Budget(short) => {
                exhausted.limit_bytes = Some(short.limit);
                exhausted.page_bytes = Some(short.requested);
                exhausted.limited_by = Some(short.name);
                exhausted.in_use_bytes = short.used;
                exhausted.driver = None;
            }
            Self::Window { bytes } => {
                exhausted.driver = Some(format!("no addresses are left in the window for {bytes} bytes"));
            }
            Self::Driver(error) => exhausted.driver = Some(error.to_string()),
            Self::Host(error) => exhausted.driver = Some(error.to_string()),
        }
    }
}

impl Backing {
    /// Where a unit lies, as commands name it, and its address; none where no memory is.
    #[inline]
    pub(crate) fn locate(&self, start: u64) -> Option<(Place, DeviceAddress)> {
        match self {
            Self::Pages(backing) => backing.locate(start),
            Self::Chunks(backing) => backing.locate(start),
        }
    }

    /// What is added to an address, in units, before it is aligned.
    pub(crate) fn phase(&self) -> u64 {
        match self {
            Self::Pages(backing) => backing.phase(),
            Self::Chunks(_) => 0,
        }
    }

    /// Whether a block can be aligned to so many units.
    pub(crate) fn check_align(&self, align: u64) -> Result<(), MemoryRefusal> {
        match self {
            Self::Chunks(_) if align > ChunkBacking::MAX_ALIGN_UNITS => Err(MemoryRefusal::Unsupported {
                what: format!("an alignment of {} bytes over chunks", align * UNIT_BYTES),
                next: "ask for 2 MiB or less",
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn grow(&self, growth: Growth) -> Result<Extent, GrowError> {
        match self {
            Self::Pages(backing) => backing.grow(growth),
            Self::Chunks(backing) => backing.grow(growth),
        }
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        match self {
            Self::Pages(backing) => backing.reserved_bytes(),
            Self::Chunks(backing) => backing.reserved_bytes(),
        }
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        match self {
            Self::Pages(backing) => backing.peak_bytes(),
            Self::Chunks(backing) => backing.peak_bytes(),
        }
    }

    /// Bytes that may still be taken, as far as is known: other users of the device may take them first.
    pub(crate) fn room_bytes(&self) -> kiln_driver::Result<u64> {
        match self {
            Self::Pages(backing) => {
                let free = backing.driver().memory_info()?.free_bytes;
                Ok(free.min(backing.room_pages() * PAGE_BYTES))
            }
            Self::Chunks(backing) => backing.room_bytes(),
        }
    }

    /// The device the memory is of.
    pub(crate) fn driver(&self) -> &dyn Driver {
        match self {
            Self::Pages(backing) => backing.driver(),
            Self::Chunks(backing) => backing.driver(),
        }
    }

    /// What a heap over it is called.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Pages(_) => "heap",
            Self::Chunks(backing) => backing.name(),
        }
    }

    /// Pages, where there are some.
    pub(crate) fn pages(&self) -> Option<&PageBacking> {
        match self {
            Self::Pages(backing) => Some(backing),
            Self::Chunks(_) => None,
        }
    }
}
