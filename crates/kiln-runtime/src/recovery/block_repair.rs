//! Blocks that can be verified or filled again after a loss, and how that is done.

mod block_registry;
mod block_repair;
mod checksum_seal;
mod read_only_seal;
mod refill;

pub(super) use block_registry::BlockRegistry;
pub(super) use block_repair::{BlockRepair, Repaired};
pub(super) use checksum_seal::Sealer;
pub(super) use read_only_seal::OwnPages;
