//! Pinned memory for copies of pageable memory, from the pool of a context. No lock is held while the driver makes or frees any: it may wait for all work then, and a
//! function of the host that is part of the work may wait for a thread that calls the API.

use kiln_driver::{Command, HostBlock, StreamId};

use crate::boundary::{Answer, OrCode};
use crate::calls::context::Context;
use crate::calls::staging_pool::{Finished, Staged, Taken};
use crate::calls::stream_order::StreamChoice;
use crate::statistics;

/// A block that a copy goes through.
pub(crate) type StagedBlock = Staged<HostBlock>;

impl Context {
    /// A block of at least so many bytes, for one copy. It goes back by [`keep_staged`](Self::keep_staged) or [`give_back_staged`](Self::give_back_staged).
    pub(crate) fn stage(&self, bytes: u64) -> Answer<StagedBlock> {
        let taken = self.order()?.get()?.staging.take(bytes);
        let (bytes, excess) = match taken {
            Taken::Idle(staged) => return Ok(staged),
            Taken::Missing { bytes, excess } => (bytes, excess),
        };
        self.free_staged(excess);
        let mut made = self.driver.allocate_host(bytes);
        if made.as_ref().is_err_and(|error| error.is_oom()) {
            let idle = self.order()?.get()?.staging.take_idle();
            if !idle.is_empty() {
                self.free_staged(idle);
                made = self.driver.allocate_host(bytes);
            }
        }
        if made.is_err() {
            self.order()?.get()?.staging.not_made(bytes);
        }
        let block = made.or_code()?;
        statistics::count_staging_block(bytes);
        Ok(Staged::new(block, bytes))
    }

    /// The copy through a block was queued, or tried to be: the block is kept until the stream is waited for. Whether that should happen now.
    pub(crate) fn keep_staged(&self, choice: &StreamChoice, staged: StagedBlock) -> Answer<bool> {
        match self.order() {
            Ok(mut order) => Ok(order.get()?.keep_staged(choice, staged)),
            Err(code) => {
                // The context ended meanwhile, and with it what was queued.
                self.free_staged([staged.block]);
                Err(code)
            }
        }
    }

    /// No work uses a block any more.
    pub(crate) fn give_back_staged(&self, staged: StagedBlock) {
        let excess = match self.order() {
            Ok(mut order) => match order.get() {
                Ok(order) => order.staging.give_back(staged),
                Err(_) => vec![staged.block],
            },
            Err(_) => vec![staged.block],
        };
        self.free_staged(excess);
    }

    /// A wait ended: the blocks of its copies that were queued before it began can be used again.
    pub(crate) fn finish_staged(&self, what: Finished<StreamId>, before: u64) -> Answer {
        let excess = self.order()?.get()?.staging.finish(what, before);
        self.free_staged(excess);
        Ok(())
    }

    pub(crate) fn free_staged(&self, blocks: impl IntoIterator<Item = HostBlock>) {
        for block in blocks {
            // A lost device keeps nothing.
            let _ = self.driver.destroy(block.id().into());
        }
    }

    /// Queues copies through a block, one after the other, and keeps the block for them. Whether the stream is to be waited for, because much is in flight.
    pub(crate) fn submit_staged<'a>(
        &self,
        choice: &StreamChoice,
        staged: StagedBlock,
        copies: impl IntoIterator<Item = Command<'a>>,
    ) -> Answer<bool> {
        let submitted = self.order().and_then(|mut order| {
            let order = order.get()?;
            copies.into_iter().try_for_each(|copy| order.submit(choice, &copy))
        });
        // Some may have been queued before one was refused.
        let is_full = self.keep_staged(choice, staged)?;
        submitted.map(|()| is_full)
    }
}
