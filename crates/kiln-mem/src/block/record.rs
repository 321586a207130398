//! What is known of a block, in one allocation of the host, and lists of such records.
//!
//! A [`DeviceBlock`](super::DeviceBlock) is a pointer to its record. It therefore passes in a register, through a trait object too, where a block of
//! 80 bytes was written to memory and copied from there. A resource that hands out many blocks keeps the records of freed blocks in a
//! [`RecordList`] and uses them again, so that a warm program allocates nothing on the host. A record in the cache of a thread still has
//! the address, the place and the token of its block: to hand the block out again, only its bytes and its tag are written.

use std::alloc::{Layout, alloc};
use std::fmt;

use kiln_driver::{DeviceAddress, Place};

use super::{BlockParts, BlockToken, ResourceKey};
use crate::last_use::StreamKey;
use crate::tag::AllocTag;
use crate::try_reserve::HostOutOfMemory;

/// Everything a block is made of. The first cache line has what allocating and freeing look at; the place comes last.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct BlockRecord {
    pub(crate) owner: ResourceKey,
    pub(crate) stream: StreamKey,
    pub(crate) tag: AllocTag,
    pub(crate) bytes: u64,
    pub(crate) token: BlockToken,
    pub(crate) address: DeviceAddress,
    /// The next record, while this one is in a list.
    next: Option<Box<BlockRecord>>,
    pub(crate) place: Option<Place>,
}

impl BlockRecord {
    /// A record in memory of the host.
    pub(crate) fn boxed(owner: ResourceKey, parts: BlockParts) -> Result<Box<Self>, HostOutOfMemory> {
        let layout = Layout::new::<Self>();
        // SAFETY: a record has bytes.
        let at = unsafe { alloc(layout) }.cast::<Self>();
        if at.is_null() {
            return Err(HostOutOfMemory { bytes: layout.size() });
        }
        // SAFETY: the allocator has just given out memory for one record, which nothing else uses, and a `Box` frees it with the same layout.
        Ok(unsafe {
            at.write(Self::new(owner, parts));
            Box::from_raw(at)
        })
    }

    pub(super) fn new(owner: ResourceKey, parts: BlockParts) -> Self {
        let BlockParts { place, address, bytes, stream, tag, token } = parts;
        Self { owner, stream, tag, bytes, token, address, next: None, place }
    }

    /// Makes it the record of another block.
    #[inline]
    pub(crate) fn rewrite(&mut self, owner: ResourceKey, parts: BlockParts) {
        let BlockParts { place, address, bytes, stream, tag, token } = parts;
        (self.owner, self.stream, self.tag, self.bytes) = (owner, stream, tag, bytes);
        (self.token, self.address, self.place) = (token, address, place);
    }

    pub(super) fn parts(&self) -> BlockParts {
        let Self { place, address, bytes, stream, tag, token, .. } = *self;
        BlockParts { place, address, bytes, stream, tag, token }
    }
}

/// Records, newest first, linked through themselves: adding one and taking one out allocate nothing.
#[derive(Default)]
pub(crate) struct RecordList {
    first: Option<Box<BlockRecord>>,
}

impl RecordList {
    pub(crate) const fn new() -> Self {
        Self { first: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, mut record: Box<BlockRecord>) {
        // A record in no list has no next one, so there is nothing to drop and no need to look.
        std::mem::forget(std::mem::replace(&mut record.next, self.first.take()));
        std::mem::forget(self.first.replace(record));
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Box<BlockRecord>> {
        let mut record = self.first.take()?;
        // What is replaced is nothing, as above.
        std::mem::forget(std::mem::replace(&mut self.first, record.next.take()));
        Some(record)
    }

    /// Frees the records.
    pub(crate) fn clear(&mut self) {
        // One after the other: a list that drops itself would need a stack as deep as it is long.
        while self.pop().is_some() {}
    }
}

impl Drop for RecordList {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for RecordList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "no records" } else { "records" })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    fn record(bytes: u64) -> Box<BlockRecord> {
        let parts = BlockParts {
            place: None,
            address: DeviceAddress(0),
            bytes,
            stream: StreamKey::default(),
            tag: AllocTag::default(),
            token: BlockToken::default(),
        };
        BlockRecord::boxed(ResourceKey::fresh(), parts).unwrap()
    }

    #[test]
    fn what_allocating_and_freeing_look_at_is_one_cache_line() {
        let looked_at = [
            offset_of!(BlockRecord, owner),
            offset_of!(BlockRecord, stream),
            offset_of!(BlockRecord, tag),
            offset_of!(BlockRecord, bytes),
            offset_of!(BlockRecord, token),
            offset_of!(BlockRecord, address),
            offset_of!(BlockRecord, next),
        ];
        assert!(looked_at.iter().all(|offset| *offset <= offset_of!(BlockRecord, next)), "{looked_at:?}");
        assert!(offset_of!(BlockRecord, place) <= 64, "the place comes after all of them");
        assert_eq!(size_of::<BlockRecord>(), 128);
    }

    #[test]
    fn a_list_gives_the_newest_first_and_a_long_one_can_be_dropped() {
        let mut list = RecordList::new();
        (0..3).for_each(|bytes| list.push(record(bytes)));
        assert_eq!(list.pop().map(|record| record.bytes), Some(2));
        list.clear();
        assert!(list.is_empty() && list.pop().is_none());
        let long = if cfg!(miri) { 100 } else { 300_000 };
        (0..long).for_each(|bytes| list.push(record(bytes)));
        drop(list);
    }
}
