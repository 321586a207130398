//! Generic addresses: windows through which one pointer reaches every memory.
//!
//! A generic address inside a window means shared, local or parameter memory; every other one is global. The low half
//! of a window's base is zero, so that code which cuts a pointer to 32 bits keeps the address in the space.

use crate::Space;

/// The lowest address of any window: global memory must lie below it.
pub const WINDOWS_START: u64 = 0x7ff0_0000_0000;

/// Where shared memory appears among generic addresses.
pub(crate) const SHARED: u64 = 0x7ff1_0000_0000;
/// Where the local memory of a thread appears.
pub(crate) const LOCAL: u64 = 0x7ff2_0000_0000;
/// Where the parameters of the kernel appear.
pub(crate) const PARAM: u64 = 0x7ff3_0000_0000;
/// Where functions have their addresses.
pub(crate) const CODE: u64 = 0x7ff4_0000_0000;
/// Where blocks that kernels allocate lie.
pub(crate) const HEAP: u64 = 0x7ff5_0000_0000;
/// Where the memory lies that the blocks of a cooperative launch meet in.
pub(crate) const WORKSPACE: u64 = 0x7ff6_0000_0000;

/// Bytes between the addresses of two functions.
const CODE_STEP: u64 = 16;

/// What an access reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Global,
    Shared,
    Local,
    Param,
    /// Any of them, as the address says.
    Generic,
}

impl Place {
    /// The memory an instruction with this space reaches; constants lie in global memory.
    pub(crate) fn of(space: Option<Space>) -> Option<Self> {
        Some(match space.map(Space::base) {
            None => Self::Generic,
            Some(Space::Global | Space::Const) => Self::Global,
            Some(Space::Shared) => Self::Shared,
            Some(Space::Local) => Self::Local,
            Some(Space::Param) => Self::Param,
            Some(_) => return None,
        })
    }

    /// The memory a generic address reaches.
    #[inline(always)]
    pub(crate) fn at(address: u64) -> Self {
        match address & !0xffff_ffff {
            SHARED => Self::Shared,
            LOCAL => Self::Local,
            PARAM => Self::Param,
            _ => Self::Global,
        }
    }

    /// What to add to an address in this memory to make it generic.
    pub(crate) fn base(self) -> u64 {
        match self {
            Self::Global | Self::Generic => 0,
            Self::Shared => SHARED,
            Self::Local => LOCAL,
            Self::Param => PARAM,
        }
    }

    /// Its name in a finding.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Global | Self::Generic => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Param => "parameter",
        }
    }
}

/// The address of a function by its number in the module.
pub(crate) fn code_address(function: u32) -> u64 {
    CODE + CODE_STEP * (u64::from(function) + 1)
}

/// The function at an address.
pub(crate) fn function_at(address: u64) -> Option<u32> {
    let offset = address.checked_sub(CODE)?;
    if offset == 0 || offset % CODE_STEP != 0 {
        return None;
    }
    u32::try_from(offset / CODE_STEP - 1).ok()
}
