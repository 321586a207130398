//! Declares uses of blocks by their `BlockId`.

use std::sync::Arc;

use kiln_driver::Access;
use smallvec::SmallVec;

use super::block_use::BlockUse;
use super::prepared_use::PreparedUse;
use crate::error::{Misuse, Result};
use crate::ids::BlockId;
use crate::runtime::{Block, DeviceRuntime, Stream, Ticket};

/// Blocks of one call that need no heap memory.
const INLINE_BLOCKS: usize = 8;

type Found = SmallVec<[(Arc<Block>, Access); INLINE_BLOCKS]>;

impl DeviceRuntime {
    /// As [`prepare_block_use`](Self::prepare_block_use), for whole blocks that the caller knows by their
    /// [names](crate::GpuRef::block_id): one guard for all of them.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    /// use kiln::driver::Access;
    /// use kiln::error::{ErrorKind, Misuse};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let (from, to) = (gpu.upload(&[1_u32, 2])?, gpu.allocate::<u32>(2)?);
    /// let names = [(from.block_id(), Access::Read), (to.block_id(), Access::Write)];
    /// let prepared = gpu.prepare_block_use_by_id(gpu.main_stream(), &names)?;
    /// // The work that uses the blocks is queued here.
    /// prepared.finish()?;
    ///
    /// drop(to);
    /// let error = gpu.prepare_block_use_by_id(gpu.main_stream(), &names).err().unwrap();
    /// assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::UseAfterFree { .. })));
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Misuse::UseAfterFree`] for a block that is freed, [`Misuse::ForeignBlock`] for one of another runtime; as for
    /// [`prepare_block_use`](Self::prepare_block_use). Nothing is queued or stamped then.
    pub fn prepare_block_use_by_id<'a>(
        &'a self,
        stream: &'a Stream,
        uses: &[(BlockId, Access)],
    ) -> Result<PreparedUse<'a>> {
        let found = self.find_blocks(uses)?;
        self.prepare_block_use(stream, &whole_blocks(&found))
    }

    /// As [`record_block_use`](Self::record_block_use), for whole blocks that the caller knows by their names.
    ///
    /// # Errors
    /// As for [`prepare_block_use_by_id`](Self::prepare_block_use_by_id).
    pub fn record_block_use_by_id(&self, stream: &Stream, uses: &[(BlockId, Access)]) -> Result<Ticket> {
        let found = self.find_blocks(uses)?;
        self.record_block_use(stream, &whole_blocks(&found))
    }

    /// The blocks with these names, all or none.
    fn find_blocks(&self, uses: &[(BlockId, Access)]) -> Result<Found> {
        let inner = self.inner();
        let find = |(block, access): &(BlockId, Access)| {
            if !inner.made(*block) {
                return Err(Misuse::ForeignBlock { block: *block }.into());
            }
            match inner.find_block(*block) {
                Some(found) => Ok((found, *access)),
                None => Err(Misuse::UseAfterFree { block: *block }.into()),
            }
        };
        uses.iter().map(find).collect()
    }
}

fn whole_blocks(found: &Found) -> SmallVec<[BlockUse<'_>; INLINE_BLOCKS]> {
    found.iter().map(|(block, access)| BlockUse { block, range: 0..block.bytes(), access: *access }).collect()
}
