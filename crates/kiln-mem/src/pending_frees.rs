//! Memory that was given back while work may still use it.
//!
//! A free does not wait: what cannot be freed yet is noted here with the submissions it waits for, and freed by a later call when they are
//! done.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{MemoryId, Timeout};

use crate::error::Result;
use crate::last_use::{Stamp, Stamps, StreamKey};
use crate::stream_order::Order;

/// A block that was given back.
pub(crate) struct Pending {
    pub(crate) memory: MemoryId,
    pub(crate) bytes: u64,
    uses: Stamps,
    /// The last submission of the block's own stream.
    own: Stamp,
}

impl Pending {
    /// A block of a stream, with its uses on others.
    pub(crate) fn new(
        memory: MemoryId,
        bytes: u64,
        stream: StreamKey,
        uses: &Stamps,
        order: &dyn Order,
    ) -> Self {
        Self { memory, bytes, uses: uses.clone(), own: Stamp { stream, number: order.latest(stream) } }
    }

    /// Whether nothing uses it any more, as far as the order knows.
    pub(crate) fn is_done(&self, order: &dyn Order) -> bool {
        self.stamps().all(|stamp| order.is_complete(stamp))
    }

    /// Everything it waits for.
    fn stamps(&self) -> impl Iterator<Item = Stamp> + '_ {
        self.uses.iter().chain([self.own]).filter(|stamp| stamp.number > 0)
    }
}

/// All blocks that wait, the oldest first.
#[derive(Default)]
pub(crate) struct PendingFrees(Mutex<VecDeque<Pending>>);

impl PendingFrees {
    /// Notes one more.
    pub(crate) fn push(&self, pending: Pending) {
        self.queue().push_back(pending);
    }

    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.queue().iter().map(|pending| pending.bytes).sum()
    }

    /// The first submission that one of them waits for.
    pub(crate) fn until(&self, order: &dyn Order) -> Option<Stamp> {
        let queue = self.queue();
        queue.iter().flat_map(Pending::stamps).find(|stamp| !order.is_complete(*stamp))
    }

    /// Asks how far everything is that one of them waits for.
    pub(crate) fn refresh(&self, order: &dyn Order) -> Result<()> {
        let mut streams: Vec<StreamKey> =
            self.queue().iter().flat_map(Pending::stamps).map(|stamp| stamp.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        Ok(streams.into_iter().try_for_each(|stream| order.refresh(stream))?)
    }

    /// Asks how far everything is that the oldest waits for.
    pub(crate) fn refresh_oldest(&self, order: &dyn Order) -> Result<()> {
        let Some((uses, own)) = self.queue().front().map(|oldest| (oldest.uses.clone(), oldest.own)) else {
            return Ok(());
        };
        let unknown = |stamp: &Stamp| stamp.number > 0 && !order.is_complete(*stamp);
        let stamps = uses.iter().chain([own]).filter(unknown);
        Ok(stamps.map(|stamp| stamp.stream).try_for_each(|stream| order.refresh(stream))?)
    }

    /// Frees those that are known to be done, each by its name and bytes; returns the bytes of all. One that cannot be freed stays.
    pub(crate) fn free_done(
        &self,
        order: &dyn Order,
        free: impl Fn(MemoryId, u64) -> Result<()>,
    ) -> Result<u64> {
        let mut freed = 0;
        loop {
            let next = {
                let mut queue = self.queue();
                queue.iter().position(|pending| pending.is_done(order)).and_then(|at| queue.remove(at))
            };
            let Some(done) = next else { return Ok(freed) };
            if let Err(error) = free(done.memory, done.bytes) {
                self.push(done);
                return Err(error);
            }
            freed += done.bytes;
        }
    }

    /// Waits for all of them and frees them. What cannot be waited for is left to the device, which is lost.
    pub(crate) fn free_all(&self, order: &dyn Order, free: impl Fn(MemoryId, u64) -> Result<()>) {
        for pending in std::mem::take(&mut *self.queue()) {
            if pending.stamps().all(|stamp| order.wait(stamp, Timeout::Never).is_ok()) {
                let _ = free(pending.memory, pending.bytes);
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
