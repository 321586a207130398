//! Blocks that can be verified or filled again after a loss, and how that is done.

mod block_registry;
mod checksum_seal;
mod read_only_seal;
mod refill;
mod verify_and_refill;

pub(super) use block_registry::BlockRegistry;
pub(super) use checksum_seal::Sealer;
pub(super) use read_only_seal::OwnPages;
pub(super) use verify_and_refill::{BlockRepair, Repaired};
