//! Where a heap's addresses come from.

use kiln_driver::{DeviceAddress, Driver, Place};

use super::arena::Edge;
use super::chunk_ground::ChunkGround;
use super::page_ground::{PAGE_BYTES, PageGround};
use super::size_class::UNIT_BYTES;
use crate::budget::Shortage;
use crate::error::Refusal;
use crate::exhausted::Exhausted;

/// A source of addresses with memory behind them.
#[expect(clippy::large_enum_variant, reason = "a heap has one, and it stays where it is")]
pub(crate) enum Ground {
    /// Pages that can be mapped anywhere in one window.
    Pages(PageGround),
    /// Chunks, each with addresses of its own.
    Chunks(ChunkGround),
}

/// What an arena is short of.
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
    pub(crate) edge: Edge,
}

/// Why there is no more.
#[derive(Clone, Debug)]
pub(crate) enum GrowError {
    /// The budget is used up.
    Budget(Shortage),
    /// The window of addresses is.
    Window { bytes: u64 },
    /// The driver said no.
    Driver(kiln_driver::Error),
}

impl GrowError {
    /// Whether less, or freeing something, may help.
    pub(crate) fn is_shortage(&self) -> bool {
        match self {
            Self::Budget(_) | Self::Window { .. } => true,
            Self::Driver(error) => error.is_oom(),
        }
    }
}

impl GrowError {
    /// Writes down who said no.
    pub(crate) fn write_into(self, exhausted: &mut Exhausted) {
        match self {
            Self::Budget(short) => {
                exhausted.limit_bytes = Some(short.limit);
                exhausted.limited_by = Some(short.name);
                exhausted.in_use_bytes = short.used;
                exhausted.driver = None;
            }
            Self::Window { bytes } => {
                exhausted.driver = Some(format!("no addresses are left in the window for {bytes} bytes"));
            }
            Self::Driver(error) => exhausted.driver = Some(error.to_string()),
        }
    }
}

impl Ground {
    /// Where a unit lies, as commands name it, and its address; none where no memory is.
    #[inline]
    pub(crate) fn locate(&self, start: u64) -> Option<(Place, DeviceAddress)> {
        match self {
            Self::Pages(ground) => ground.locate(start),
            Self::Chunks(ground) => ground.locate(start),
        }
    }

    /// What is added to an address, in units, before it is aligned.
    pub(crate) fn phase(&self) -> u64 {
        match self {
            Self::Pages(ground) => ground.phase(),
            Self::Chunks(_) => 0,
        }
    }

    /// Whether a block can be aligned to so many units.
    pub(crate) fn check_align(&self, align: u64) -> Result<(), Refusal> {
        match self {
            Self::Chunks(_) if align > ChunkGround::MAX_ALIGN_UNITS => Err(Refusal::Unsupported {
                what: format!("an alignment of {} bytes over chunks", align * UNIT_BYTES),
                next: "ask for 2 MiB or less",
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn grow(&self, growth: Growth) -> Result<Extent, GrowError> {
        match self {
            Self::Pages(ground) => ground.grow(growth),
            Self::Chunks(ground) => ground.grow(growth),
        }
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        match self {
            Self::Pages(ground) => ground.reserved_bytes(),
            Self::Chunks(ground) => ground.reserved_bytes(),
        }
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        match self {
            Self::Pages(ground) => ground.peak_bytes(),
            Self::Chunks(ground) => ground.peak_bytes(),
        }
    }

    /// Bytes that may still be taken, as far as it is known: others may be faster.
    pub(crate) fn room_bytes(&self) -> kiln_driver::Result<u64> {
        match self {
            Self::Pages(ground) => {
                let free = ground.driver().memory_info()?.free_bytes;
                Ok(free.min(ground.room_pages() * PAGE_BYTES))
            }
            Self::Chunks(ground) => ground.room_bytes(),
        }
    }

    /// The device the memory is of.
    pub(crate) fn driver(&self) -> &dyn Driver {
        match self {
            Self::Pages(ground) => ground.driver(),
            Self::Chunks(ground) => ground.driver(),
        }
    }

    /// What a heap over it is called.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Pages(_) => "heap",
            Self::Chunks(ground) => ground.name(),
        }
    }

    /// Pages, where there are some.
    pub(crate) fn pages(&self) -> Option<&PageGround> {
        match self {
            Self::Pages(ground) => Some(ground),
            Self::Chunks(_) => None,
        }
    }
}
