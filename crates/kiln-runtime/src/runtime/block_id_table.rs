//! Blocks that can be found by their name.
//!
//! A block is entered when its name is first asked for, so that blocks whose names are never used cost nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::block::Block;
use super::inner::Inner;
use crate::ids::BlockId;

/// The blocks of one runtime whose names were asked for.
#[derive(Default)]
pub(crate) struct NamedBlocks {
    blocks: Mutex<HashMap<BlockId, Weak<Block>>>,
}

impl NamedBlocks {
    /// Makes a block known by its name.
    pub(super) fn enter(&self, block: &Arc<Block>) {
        self.blocks().insert(block.id(), Arc::downgrade(block));
    }

    /// The block is freed.
    pub(super) fn leave(&self, block: BlockId) {
        self.blocks().remove(&block);
    }

    /// The block, if it is alive and its name was asked for.
    pub(crate) fn find(&self, block: BlockId) -> Option<Arc<Block>> {
        self.blocks().get(&block)?.upgrade()
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<BlockId, Weak<Block>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether it gave the name of a block out.
    pub(crate) fn made(&self, block: BlockId) -> bool {
        block.is_of(self.key().number())
    }

    /// A block of this runtime by its name; none if it is freed.
    pub(crate) fn find_block(&self, block: BlockId) -> Option<Arc<Block>> {
        let registered = || self.recovery().and_then(|recovery| recovery.find_block(block));
        self.named_blocks().find(block).or_else(registered)
    }
}
