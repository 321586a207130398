//! Blocks that can be verified or filled again after a loss, and how that is done.

mod block_registry;
mod block_repair;
mod read_only;
mod refill;
mod seal;

pub(super) use block_registry::BlockRegistry;
pub(super) use block_repair::{BlockRepair, Repaired};
pub(super) use read_only::OwnPages;
pub(super) use seal::Sealer;
