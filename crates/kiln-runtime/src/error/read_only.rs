//! Why a block cannot be mapped read-only.

use kiln_mem::ByteSize;

use crate::ids::BlockId;

/// Why a block cannot be mapped read-only. It is as it was; [`seal`](crate::GpuRef::seal), which sums it, is there for all blocks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// Other blocks lie, or may come to lie, in the same physical memory.
    #[error(
        "{block} of {} does not own its pages, and pages are protected whole; allocate it from a memory stack based on `pages`, or seal it by checksum (`seal`)",
        ByteSize(*bytes)
    )]
    SharedPages {
        /// The block.
        block: BlockId,
        /// Its size.
        bytes: u64,
    },
    /// The device has no such protection.
    #[error("read-only mapping is not supported by this device ({why}); seal the block by checksum (`seal`)")]
    Unsupported {
        /// What it said.
        why: String,
    },
    /// A device in this process.
    #[error(
        "a device in this process does not come back after a fault, so there is nothing to seal a block for; keep it in a worker process (`Isolation::Process`)"
    )]
    InProcess,
}
