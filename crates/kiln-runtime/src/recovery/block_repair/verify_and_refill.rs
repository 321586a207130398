//! What is done to blocks after a takeover and before work is taken again: sealed ones are verified, lost ones filled again.
//!
//! It goes past the order, to the device itself: no other thread submits meanwhile, and nothing of what was submitted before runs.

use std::collections::HashMap;
use std::sync::Arc;

use kiln_driver::{Driver, DriverExt, Error, HostBlock, MemoryRequest, Result, StreamId, StreamRequest};
use kiln_isolate::{Checksum, ChecksumRequest, IsolatedDevice};
use kiln_order::StreamClock;

use super::block_registry::{BlockRegistry, Provision};
use super::checksum_seal::Sealer;
use crate::device_state::Loss;
use crate::ids::BlockId;
use crate::recovery::report::BlockOutcome;
use crate::runtime::Block;

/// Bytes that are copied at a time.
const CHUNK_BYTES: u64 = 4 << 20;

/// What was found out about blocks; those that are not named are decided by declaration.
pub(crate) type Repaired = HashMap<BlockId, BlockOutcome>;

/// A separate stream, for one takeover.
pub(crate) struct BlockRepair<'a> {
    device: &'a IsolatedDevice,
    stream: StreamId,
    sealer: &'a Sealer,
}

impl<'a> BlockRepair<'a> {
    /// Verifies and heals what can be.
    ///
    /// # Errors
    /// The new worker is lost too; nothing is decided then.
    pub(crate) fn run(
        device: &'a IsolatedDevice,
        sealer: &'a Sealer,
        registry: &BlockRegistry,
        blocks: &[Arc<Block>],
        loss: &Loss,
        known: &StreamClock,
    ) -> Result<Repaired> {
        let provided: Vec<(&Arc<Block>, Provision)> = blocks
            .iter()
            .filter(|block| !block.is_lost() && block.bytes() > 0)
            .filter_map(|block| Some((block, registry.provision(block, known)?)))
            .collect();
        if provided.is_empty() {
            return Ok(Repaired::new());
        }
        let stream = device.create_stream(StreamRequest::New { priority: 0 })?;
        let repair = Self { device, stream, sealer };
        let repaired = provided.iter().try_fold(Repaired::new(), |mut repaired, (block, provision)| {
            if let Some(outcome) = repair.look_at(block, provision, loss)? {
                repaired.insert(block.id(), outcome);
            }
            Ok(repaired)
        });
        // A lost device has released it.
        let _ = device.destroy(stream.into());
        repaired
    }

    fn look_at(&self, block: &Block, provision: &Provision, loss: &Loss) -> Result<Option<BlockOutcome>> {
        let found = if block.is_touched(loss) {
            Some(BlockOutcome::Touched)
        } else if let Some(sealed) = &provision.sums {
            // A device that has no room for sums, or no kernel for them, leaves the block as it is by declaration.
            let sums = unless_sticky(self.sum(block))?;
            sums.map(|sums| if sums == *sealed { BlockOutcome::Verified } else { BlockOutcome::Broken })
        } else {
            None
        };
        let lost = found.is_some_and(BlockOutcome::is_lost);
        match &provision.refill {
            Some(refill) if lost => {
                let mut filled = Ok(());
                let poured = refill.pour(block.bytes(), |bytes| filled = self.fill(block, bytes));
                let healed = poured && unless_sticky(filled)?.is_some();
                Ok(if healed { Some(BlockOutcome::Healed) } else { found })
            }
            _ => Ok(found),
        }
    }

    /// The sums of a block as it is now.
    fn sum(&self, block: &Block) -> Result<Vec<u64>> {
        let device = self.device;
        let checksum = self.sealer.kernel(device)?;
        let bytes = Checksum::chunks(block.bytes()) * 8;
        let room = device.allocate(MemoryRequest::Direct { bytes })?;
        let host = device.allocate_host(bytes)?;
        let summed = ChecksumRequest {
            address: block.address(0),
            bytes: block.bytes(),
            sums: room.id.into(),
            sums_address: room.address,
        };
        // SAFETY: the block is alive, so its bytes are mapped; the room was just allocated with eight bytes for each chunk and is freed after
        // the stream was waited for; no other thread submits while a device is being rebuilt, so nothing writes to either.
        let queued = unsafe { checksum.submit(device, self.stream, &summed) };
        let done = queued
            .and_then(|_| device.download(self.stream, room.id.into(), &host, bytes))
            .and_then(|_| device.synchronize(self.stream));
        let sums = done.and_then(|()| read(&host));
        // A lost device has released both.
        let _ = device.free(room.id, None);
        let _ = device.destroy(host.id().into());
        sums
    }

    /// Copies bytes into a block, and waits for that.
    fn fill(&self, block: &Block, bytes: &[u8]) -> Result<()> {
        let device = self.device;
        let Some(place) = block.place(0) else { return Ok(()) };
        let host = device.allocate_host(CHUNK_BYTES.min(bytes.len() as u64))?;
        let copied = bytes.chunks(CHUNK_BYTES as usize).zip(0..).try_for_each(|(chunk, at)| {
            if !host.write(0, chunk) {
                return Err(Error::invalid("heal", "a chunk larger than its room", "report this"));
            }
            device.upload(self.stream, &host, place.plus(at * CHUNK_BYTES), chunk.len() as u64)?;
            device.synchronize(self.stream)
        });
        let _ = device.destroy(host.id().into());
        copied
    }
}

fn read(host: &HostBlock) -> Result<Vec<u64>> {
    let mut bytes = Vec::new();
    let reserved = bytes.try_reserve_exact(host.len());
    reserved.map_err(|_| Error::out_of_memory("seal", host.len() as u64, None))?;
    bytes.resize(host.len(), 0);
    if !host.read(0, &mut bytes) {
        return Err(Error::invalid("seal", "sums that lie outside of their block", "report this"));
    }
    let (marks, _) = bytes.as_chunks::<8>();
    Ok(marks.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// What came of it; none if it was refused. A lost device is an error.
fn unless_sticky<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_sticky() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "a block could not be verified or filled again");
            Ok(None)
        }
    }
}
