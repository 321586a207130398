//! All blocks of an isolated device, so that a takeover can say of each what became of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::runtime::{Block, BlockId};

/// The blocks that are alive.
#[derive(Default)]
pub(crate) struct Census {
    blocks: Mutex<HashMap<BlockId, Weak<Block>>>,
}

impl Census {
    pub(crate) fn register(&self, block: &Arc<Block>) {
        self.blocks().insert(block.id(), Arc::downgrade(block));
    }

    pub(crate) fn strike(&self, block: BlockId) {
        self.blocks().remove(&block);
    }

    /// Those of now, by name. They are alive as long as what is returned.
    pub(super) fn all(&self) -> Vec<Arc<Block>> {
        let mut all: Vec<Arc<Block>> = self.blocks().values().filter_map(Weak::upgrade).collect();
        all.sort_unstable_by_key(|block| block.id());
        all
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<BlockId, Weak<Block>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
