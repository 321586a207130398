//! Generic addresses: windows through which one pointer reaches every memory.
//!
//! A generic address inside a window means shared, local or parameter memory; every other one is global. The low half
//! of a window's base is zero, so that code which cuts a pointer to 32 bits keeps the address in the space. Each block has a window for its shared
//! memory and each thread one for its local memory, so that a pointer tells whose memory it means.

use crate::Space;

/// The lowest address of any window: global memory must lie below it.
pub const WINDOWS_START: u64 = 0x7ff0_0000_0000;

/// The highest byte of the addresses of shared memory.
const SHARED: u64 = 0x53;
/// The highest byte of the addresses of local memory.
const LOCAL: u64 = 0x4c;
/// Bits of an address below those that tell its window.
const WINDOW_BITS: u32 = 32;
/// How many windows there are for each of them; blocks and threads beyond use those of others again.
const WINDOWS: u64 = (1 << 24) - 2;

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
    /// The shared memory of any block of the cluster, as the address says.
    Cluster,
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
            Some(Space::SharedCluster) => Self::Cluster,
            Some(Space::Local) => Self::Local,
            Some(Space::Param) => Self::Param,
            Some(_) => return None,
        })
    }

    /// The memory a generic address reaches.
    #[inline(always)]
    pub(crate) fn at(address: u64) -> Self {
        match address >> 56 {
            SHARED => Self::Shared,
            LOCAL => Self::Local,
            _ if address & !0xffff_ffff == PARAM => Self::Param,
            _ => Self::Global,
        }
    }

    /// What to add to an address in this memory to make it generic; shared and local memory have [windows](shared_window).
    pub(crate) fn base(self) -> u64 {
        if self == Self::Param { PARAM } else { 0 }
    }

    /// Its name in a finding.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Global | Self::Generic => "global",
            Self::Shared | Self::Cluster => "shared",
            Self::Local => "local",
            Self::Param => "parameter",
        }
    }
}

/// Where the shared memory of a block appears among generic addresses, by the number of the block.
pub(crate) fn shared_window(block: u64) -> u64 {
    SHARED << 56 | (1 + block % WINDOWS) << WINDOW_BITS
}

/// Where the local memory of a thread appears, by the number of the thread in the grid.
pub(crate) fn local_window(thread: u64) -> u64 {
    LOCAL << 56 | (1 + thread % WINDOWS) << WINDOW_BITS
}

/// The address inside of a window, if it means that window. It may lie before the start of it, as what is in front of an array does.
#[inline(always)]
pub(crate) fn in_window(address: u64, window: u64) -> Option<u64> {
    let within = address.wrapping_sub(window);
    (within.wrapping_add(1 << (WINDOW_BITS - 1)) >> WINDOW_BITS == 0).then_some(within)
}

/// The number of the block or thread whose window an address means, of so many; `None` where several share the window.
pub(crate) fn owner_of(address: u64, count: u64) -> Option<u64> {
    let window = address.wrapping_add(1 << (WINDOW_BITS - 1)) >> WINDOW_BITS & 0xff_ffff;
    let owner = window.checked_sub(1)?;
    (count <= WINDOWS && owner < count).then_some(owner)
}

/// Bits of an address of `.shared::cluster` below those that tell the block.
const RANK_BITS: u32 = 24;
/// The highest rank that an address can tell.
const MAX_RANK: u64 = 0xfd;
/// The window of ranks that the cluster does not have: no block has it.
const OUTSIDE: u64 = SHARED << 56 | 0xff_ffff << WINDOW_BITS;

/// An address of `.shared::cluster` in the memory of another block of the cluster.
pub(crate) fn cluster_address(rank: u64, within: u64) -> u64 {
    (1 + rank.min(MAX_RANK)) << RANK_BITS | within & ((1 << RANK_BITS) - 1)
}

/// The rank of another block that an address of `.shared::cluster` means, and the address in its memory. Addresses of the own block have no rank.
#[inline(always)]
pub(crate) fn cluster_rank(address: u64) -> (Option<u64>, u64) {
    match address >> RANK_BITS {
        tag if (1..=1 + MAX_RANK).contains(&tag) => (Some(tag - 1), address & ((1 << RANK_BITS) - 1)),
        _ => (None, address),
    }
}

/// A generic address for a rank that the cluster does not have.
pub(crate) fn outside_cluster(rank: u64, within: u64) -> u64 {
    OUTSIDE | cluster_address(rank, within)
}

/// Whether a generic address is one of those.
pub(crate) fn is_outside_cluster(address: u64) -> bool {
    address & !0xffff_ffff == OUTSIDE
}

/// Its rank, and the address in the memory.
pub(crate) fn outside_rank(address: u64) -> (u64, u64) {
    let (rank, within) = cluster_rank(address & 0xffff_ffff);
    (rank.unwrap_or(0), within)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_tells_whose_memory_it_means() {
        let (own, other) = (local_window(7), local_window(9));
        assert_eq!((Place::at(own), Place::at(shared_window(7))), (Place::Local, Place::Shared));
        assert_eq!((in_window(own + 16, own), in_window(other + 16, own)), (Some(16), None));
        assert_eq!(in_window(own - 4, own), Some(4u64.wrapping_neg()));
        assert_eq!(
            (owner_of(other + 16, 32), owner_of(other - 4, 32), owner_of(other, 8)),
            (Some(9), Some(9), None)
        );
        assert_eq!(Place::at(4u64.wrapping_neg()), Place::Global);
    }

    #[test]
    fn an_address_of_a_cluster_tells_the_rank() {
        assert_eq!(cluster_rank(cluster_address(15, 0x1234)), (Some(15), 0x1234));
        assert_eq!((cluster_rank(0x1234), cluster_rank(0xffff_fffc)), ((None, 0x1234), (None, 0xffff_fffc)));
        let outside = outside_cluster(9, 16);
        assert!(is_outside_cluster(outside) && !is_outside_cluster(shared_window(9)));
        assert_eq!((outside_rank(outside), Place::at(outside)), ((9, 16), Place::Shared));
    }
}
