//! A block of memory, and the keys that say which resource it belongs to.

mod record;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_driver::{DeviceAddress, DevicePlace, Place};

use crate::last_use::StreamKey;
use crate::request::AllocationRequest;
use crate::tag::AllocTag;
use crate::try_reserve::HostOutOfMemory;

pub(crate) use record::{BlockRecord, RecordList};

/// The identity of a memory resource in this process; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ResourceKey(u32);

impl ResourceKey {
    /// A key that no other resource has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resource {}", self.0)
    }
}

/// The name of a block in messages, traces and tables: its first address, which no other live block has. A plain value;
/// holding it keeps nothing alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DeviceBlockId(pub DeviceAddress);

impl fmt::Display for DeviceBlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the block at {}", self.0)
    }
}

/// A block of memory, owned by the holder of this value.
///
/// A [`MemoryResource`](crate::MemoryResource) gives it out and takes it back. It cannot be copied, and safe code cannot make a second one for
/// the same memory, so it cannot be freed twice. Dropping it without freeing it leaks the device memory until the resource is dropped.
///
/// It is one pointer long. What is known of the block lies behind the pointer, in a record of 128 bytes that its resource uses again.
///
/// ```compile_fail,E0382
/// use kiln_mem::{DeviceBlock, MemoryResource, MemoryResourceExt};
///
/// fn free_twice(resource: &dyn MemoryResource, block: DeviceBlock) {
///     resource.free(block).ok();
///     resource.free(block).ok(); // The block was moved by the first call.
/// }
/// ```
///
/// ```compile_fail,E0133
/// use kiln_mem::{BlockParts, DeviceBlock, MemoryResource, MemoryResourceExt};
///
/// fn free_a_forgery(resource: &dyn MemoryResource, parts: BlockParts) {
///     resource.free(DeviceBlock::from_parts(resource.key(), parts)).ok(); // `from_parts` is unsafe.
/// }
/// ```
#[must_use = "dropping a block leaks its memory; give it back to its resource"]
pub struct DeviceBlock {
    record: Box<BlockRecord>,
}

/// Two words for the resource that made the block; nothing else reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockToken {
    /// One word.
    pub first: u64,
    /// Another.
    pub second: u64,
}

/// Everything a block is made of; for authors of resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockParts {
    /// Where it lies, as commands name it; none for a block of zero bytes that takes no memory.
    pub place: Option<Place>,
    /// Its first address.
    pub address: DeviceAddress,
    /// How many bytes its owner may use.
    pub bytes: u64,
    /// The stream it was asked for.
    pub stream: StreamKey,
    /// What it is for.
    pub tag: AllocTag,
    /// What the resource needs to find it again.
    pub token: BlockToken,
}

impl DeviceBlock {
    /// A block of a resource outside of this crate. [`into_parts`](Self::into_parts) undoes it.
    ///
    /// # Safety
    /// The parts name memory that belongs to the caller, or are what [`into_parts`](Self::into_parts) made of a block of the caller's,
    /// and no other block is made of them: the holder of a block uses all its bytes and gives them back once. If there is a resource with the
    /// key `owner`, it is the one that knows the token.
    pub unsafe fn from_parts(owner: ResourceKey, parts: BlockParts) -> Self {
        Self { record: Box::new(BlockRecord::new(owner, parts)) }
    }

    /// A block of a resource of this crate, each of which makes one block of the memory it takes out of its tables.
    pub(crate) fn new(owner: ResourceKey, parts: BlockParts) -> Result<Self, HostOutOfMemory> {
        Ok(Self { record: BlockRecord::boxed(owner, parts)? })
    }

    /// A block for a request that has no memory yet, so that nothing can fail once it has.
    pub(crate) fn vacant(owner: ResourceKey, request: &AllocationRequest) -> Result<Self, HostOutOfMemory> {
        let AllocationRequest { bytes, stream, tag, .. } = *request;
        let (place, address, token) = (None, DeviceAddress(0), BlockToken::default());
        Self::new(owner, BlockParts { place, address, bytes, stream: stream.key(), tag, token })
    }

    /// The same block with memory.
    pub(crate) fn placed(mut self, place: Place, address: DeviceAddress, token: BlockToken) -> Self {
        (self.record.place, self.record.address, self.record.token) = (Some(place), address, token);
        self
    }

    /// The block that a record describes.
    #[inline]
    pub(crate) fn of_record(record: Box<BlockRecord>) -> Self {
        Self { record }
    }

    /// The record, which its resource may use again for another block.
    #[inline]
    pub(crate) fn into_record(self) -> Box<BlockRecord> {
        self.record
    }

    /// The parts, if the block belongs to this resource; for authors of resources.
    ///
    /// # Errors
    /// The block, unchanged, if it belongs to another resource.
    pub fn into_parts(self, owner: ResourceKey) -> Result<BlockParts, Self> {
        if self.record.owner == owner { Ok(self.record.parts()) } else { Err(self) }
    }

    /// Its name.
    pub fn id(&self) -> DeviceBlockId {
        DeviceBlockId(self.record.address)
    }

    /// The resource it belongs to.
    #[inline]
    pub fn owner(&self) -> ResourceKey {
        self.record.owner
    }

    /// Its first address.
    #[inline]
    pub fn address(&self) -> DeviceAddress {
        self.record.address
    }

    /// How many bytes it has.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.record.bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.record.bytes == 0
    }

    /// Where it lies, as a copy names it; none for a block of zero bytes.
    pub fn place(&self) -> Option<Place> {
        self.record.place
    }

    /// Where it lies in device memory; none for a block of zero bytes and for host memory.
    pub fn device_place(&self) -> Option<DevicePlace> {
        match self.record.place {
            Some(Place::Device(place)) => Some(place),
            _ => None,
        }
    }

    /// The stream it was asked for.
    #[inline]
    pub fn stream(&self) -> StreamKey {
        self.record.stream
    }

    /// What it is for.
    #[inline]
    pub fn tag(&self) -> AllocTag {
        self.record.tag
    }

    /// The two words of its resource.
    pub(crate) fn token(&self) -> BlockToken {
        self.record.token
    }

    /// Makes it a block of another resource of the same stack; layers do this on the way out and undo it on the
    /// way in, so that a block can only be freed where it was allocated.
    #[inline]
    pub(crate) fn rebound(mut self, owner: ResourceKey) -> Self {
        self.record.owner = owner;
        self
    }

    /// The part of it from `skip` on, `bytes` long; undone by [`widened`](Self::widened).
    pub(crate) fn narrowed(mut self, skip: u64, bytes: u64) -> Self {
        self.shift(skip, false);
        self.record.bytes = bytes;
        self
    }

    /// The block that [`narrowed`](Self::narrowed) made smaller.
    pub(crate) fn widened(mut self, skip: u64, bytes: u64) -> Self {
        self.shift(skip, true);
        self.record.bytes = bytes;
        self
    }

    fn shift(&mut self, by: u64, back: bool) {
        let moved = |at: u64| if back { at.wrapping_sub(by) } else { at.wrapping_add(by) };
        self.record.address = DeviceAddress(moved(self.record.address.0));
        match &mut self.record.place {
            Some(Place::Device(place) | Place::Peer(place)) => place.offset = moved(place.offset),
            Some(Place::Host { offset, .. }) => *offset = moved(*offset),
            None => {}
        }
    }
}

impl fmt::Debug for DeviceBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DeviceBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockRecord { bytes, stream, tag, .. } = &*self.record;
        write!(f, "{} ({bytes} bytes, {tag}, {stream})", self.id())
    }
}
