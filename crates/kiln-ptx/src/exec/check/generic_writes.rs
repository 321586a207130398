//! Writes to shared memory that asynchronous copies and products need not see.
//!
//! Threads access memory through the generic proxy; bulk copies, tensor copies and `wgmma` do it through the async proxy. PTX orders a write of a thread
//! before such a read only if a `fence.proxy.async` lies in between, besides what orders them otherwise: behind the write, in the thread that wrote or in one that is
//! ordered behind it.
//!
//! Here a word remembers its last write by a thread of the block, and the block what its fences lie behind. Whether the fence itself comes before the read is not
//! asked.

use super::races::BlockRaces;
use super::vector_clock::Time;

/// Bytes of a word.
const WORD_BYTES: u64 = 4;

/// A write of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GenericWrite {
    /// The instruction and its thread: the warp by its number in the grid.
    pub(crate) pc: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u8,
    time: Time,
}

/// The last writes of the words of a block's shared memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct GenericWrites {
    words: Vec<Option<GenericWrite>>,
}

impl GenericWrites {
    fn set(&mut self, address: u64, bytes: u32, write: Option<GenericWrite>) {
        let (first, end) = words(address, bytes);
        if write.is_some() && self.words.len() < end {
            self.words.resize(end, None);
        }
        let end = end.min(self.words.len());
        if let Some(words) = self.words.get_mut(first.min(end)..end) {
            words.fill(write);
        }
    }

    /// Something else than a thread of the block writes: what was written before does not matter any more.
    pub(crate) fn forget(&mut self, address: u64, bytes: u32) {
        self.set(address, bytes, None);
    }

    fn at(&self, address: u64, bytes: u32) -> impl Iterator<Item = GenericWrite> {
        let (first, end) = words(address, bytes);
        let end = end.min(self.words.len());
        self.words.get(first.min(end)..end).unwrap_or_default().iter().flatten().copied()
    }
}

fn words(address: u64, bytes: u32) -> (usize, usize) {
    let end = address.saturating_add(u64::from(bytes)).div_ceil(WORD_BYTES);
    ((address / WORD_BYTES) as usize, end as usize)
}

impl BlockRaces<'_> {
    /// A lane writes shared memory of its block.
    pub(crate) fn write_generic(&mut self, (warp, lane): (usize, usize), pc: u32, address: u64, bytes: u32) {
        let (number, time) = (self.clocks.number(warp), self.clocks.now(warp));
        if let Some(writes) = &mut self.copies.generic {
            writes.set(address, bytes, Some(GenericWrite { pc, warp: number, lane: lane as u8, time }));
        }
    }

    /// Lanes execute a `fence.proxy.async`: it covers all that they are ordered behind.
    pub(crate) fn fence_proxies(&mut self, warp: usize, lanes: u32) {
        if self.copies.generic.is_none() {
            return;
        }
        let fenced = self.fenced.get_or_insert_default();
        fenced.join(&self.clocks.gathered(warp, lanes));
        fenced.join(self.clocks.base.clock());
        self.clocks.tick(warp);
    }

    /// A write that no fence covers, where the async proxy reads.
    pub(crate) fn unfenced(&self, address: u64, bytes: u32) -> Option<GenericWrite> {
        let writes = self.copies.generic.as_ref()?;
        let is_fenced = |write: &GenericWrite| {
            self.fenced
                .as_ref()
                .is_some_and(|fenced| fenced.covers(write.warp, write.lane.into(), write.time))
        };
        writes.at(address, bytes).find(|write| !is_fenced(write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_last_write() {
        let write = |pc: u32| GenericWrite { pc, warp: 0, lane: 0, time: 1 };
        let mut writes = GenericWrites::default();
        writes.set(8, 8, Some(write(1)));
        writes.set(15, 1, Some(write(2)));
        assert_eq!(writes.at(0, 16).map(|write| write.pc).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(writes.at(16, 1 << 20).count() + writes.at(1 << 40, 4).count(), 0);
        writes.forget(8, 4);
        writes.forget(1 << 30, 4);
        assert_eq!(writes.at(8, 8).collect::<Vec<_>>(), [write(2)]);
    }
}
