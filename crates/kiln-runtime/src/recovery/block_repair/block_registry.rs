//! All blocks of an isolated device, so that a takeover can say of each what became of it; and what was provided for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kiln_order::StreamClock;

use super::checksum_seal::Seal;
use super::refill::Refill;
use crate::ids::BlockId;
use crate::runtime::Block;

/// The blocks that are alive.
#[derive(Default)]
pub(crate) struct BlockRegistry {
    blocks: Mutex<HashMap<BlockId, Entry>>,
}

struct Entry {
    block: Weak<Block>,
    refill: Option<Refill>,
    /// By itself, since most blocks have none.
    seal: Option<Box<Seal>>,
}

/// What can be done for a block.
pub(crate) struct Provision {
    /// The sums it must have, if it is sealed.
    pub(crate) sums: Option<Vec<u64>>,
    pub(crate) refill: Option<Refill>,
}

impl BlockRegistry {
    pub(crate) fn register(&self, block: &Arc<Block>) {
        let entry = Entry { block: Arc::downgrade(block), refill: None, seal: None };
        self.blocks().insert(block.id(), entry);
    }

    /// The block with a name, if it is alive.
    pub(crate) fn find(&self, block: BlockId) -> Option<Arc<Block>> {
        self.blocks().get(&block)?.block.upgrade()
    }

    pub(crate) fn strike(&self, block: BlockId) {
        let entry = self.blocks().remove(&block);
        // With no lock held: a refill is the caller's own.
        drop(entry);
    }

    pub(crate) fn set_refill(&self, block: BlockId, refill: Refill) {
        let mut blocks = self.blocks();
        let before = blocks.get_mut(&block).and_then(|entry| entry.refill.replace(refill));
        drop(blocks);
        drop(before);
    }

    pub(crate) fn set_seal(&self, block: BlockId, seal: Seal) {
        let mut blocks = self.blocks();
        let before = blocks.get_mut(&block).and_then(|entry| entry.seal.replace(Box::new(seal)));
        drop(blocks);
        drop(before);
    }

    pub(crate) fn break_seal(&self, block: BlockId) {
        let mut blocks = self.blocks();
        let before = blocks.get_mut(&block).and_then(|entry| entry.seal.take());
        drop(blocks);
        drop(before);
    }

    /// What can be done for a block; none if nothing can.
    pub(crate) fn provision(&self, block: &Block, known: &StreamClock) -> Option<Provision> {
        let blocks = self.blocks();
        let entry = blocks.get(&block.id())?;
        let sums = entry.seal.as_ref().and_then(|seal| seal.sums(block, known));
        let refill = entry.refill.clone();
        (sums.is_some() || refill.is_some()).then_some(Provision { sums, refill })
    }

    /// Those of now, by name. They are alive as long as what is returned.
    pub(crate) fn all(&self) -> Vec<Arc<Block>> {
        let mut all: Vec<Arc<Block>> =
            self.blocks().values().filter_map(|entry| entry.block.upgrade()).collect();
        all.sort_unstable_by_key(|block| block.id());
        all
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<BlockId, Entry>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
