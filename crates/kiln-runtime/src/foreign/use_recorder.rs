//! Declares the use of many blocks in one call.

use kiln_driver::Access;

use super::block_use::BlockUse;
use super::prepared_use::PreparedUse;
use crate::buffer::{Element, GpuRef};
use crate::counters::Count;
use crate::error::Result;
use crate::runtime::{DeviceRuntime, Stream, Ticket};

/// Collects the blocks of work the caller is about to queue. Naming the same bytes twice merges to the stronger access.
///
/// [`preflight`](Self::preflight) makes every refusal happen before anything is queued; [`commit`](PreparedUse::commit) of what it
/// returns ends the use.
#[derive(Debug)]
pub struct Recorder<'a> {
    runtime: &'a DeviceRuntime,
    stream: &'a Stream,
    uses: Vec<BlockUse<'a>>,
}

impl DeviceRuntime {
    /// Begins to collect blocks for work on a stream.
    pub fn recorder<'a>(&'a self, stream: &'a Stream) -> Recorder<'a> {
        Recorder { runtime: self, stream, uses: Vec::new() }
    }

    /// Prepared uses that were dropped without being finished or committed.
    pub fn unfinished_uses(&self) -> u64 {
        self.inner().counters().get(Count::UnfinishedUses)
    }
}

impl<'a> Recorder<'a> {
    /// A buffer that is read.
    pub fn read<T: Element>(&mut self, buffer: &'a GpuRef<T>) -> &mut Self {
        self.add(buffer.used_as(Access::Read))
    }

    /// A buffer that is overwritten.
    pub fn write<T: Element>(&mut self, buffer: &'a GpuRef<T>) -> &mut Self {
        self.add(buffer.used_as(Access::Write))
    }

    /// A buffer that is read and written.
    pub fn read_write<T: Element>(&mut self, buffer: &'a GpuRef<T>) -> &mut Self {
        self.add(buffer.used_as(Access::ReadWrite))
    }

    /// Blocks collected so far, those named twice counted once.
    pub fn len(&self) -> usize {
        self.uses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.uses.is_empty()
    }

    /// Checks everything, queues the waits and stamps the blocks. Queue the work next, then commit.
    ///
    /// # Errors
    /// As for [`DeviceRuntime::prepare_block_use`]; nothing is queued or stamped then.
    pub fn preflight(&self) -> Result<PreparedUse<'a>> {
        self.runtime.prepare_block_use(self.stream, &self.uses)
    }

    fn add(&mut self, new: BlockUse<'a>) -> &mut Self {
        let same =
            |known: &&mut BlockUse<'a>| std::ptr::eq(known.block, new.block) && known.range == new.range;
        match self.uses.iter_mut().find(same) {
            Some(known) => known.access = known.access.union(new.access),
            None => self.uses.push(new),
        }
        self
    }
}

impl PreparedUse<'_> {
    /// The work is queued; the same as [`finish`](Self::finish), in the words of a recorder.
    ///
    /// # Errors
    /// What the driver says.
    pub fn commit(self) -> Result<Ticket> {
        self.finish()
    }
}
