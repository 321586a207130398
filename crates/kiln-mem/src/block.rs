//! A block of memory somebody owns.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_driver::{DeviceAddress, DevicePlace, Place};

use crate::stamp::StreamKey;
use crate::tag::AllocTag;

/// The identity of a memory resource in this process; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ResourceKey(u32);

impl ResourceKey {
    /// A key nobody else has.
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
pub struct BlockId(pub DeviceAddress);

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the block at {}", self.0)
    }
}

/// A block of memory, owned by whoever holds this value.
///
/// It is given out by a [`MemoryResource`](crate::MemoryResource) and goes back to the same one. It cannot be copied,
/// and safe code cannot make another one for the same memory, so it cannot be freed twice; dropping it without freeing it
/// leaks the memory until the resource goes.
///
/// ```compile_fail,E0382
/// use kiln_mem::{DeviceBlock, MemoryResource, MemoryResourceExt};
///
/// fn free_twice(resource: &dyn MemoryResource, block: DeviceBlock) {
///     resource.free(block).ok();
///     resource.free(block).ok(); // It was given away.
/// }
/// ```
///
/// ```compile_fail,E0133
/// use kiln_mem::{BlockParts, DeviceBlock, MemoryResource, MemoryResourceExt};
///
/// fn free_a_forgery(resource: &dyn MemoryResource, parts: BlockParts) {
///     resource.free(DeviceBlock::from_parts(resource.key(), parts)).ok(); // Nobody vouches for the parts.
/// }
/// ```
#[must_use = "dropping a block leaks its memory; give it back to its resource"]
pub struct DeviceBlock {
    pub(crate) place: Option<Place>,
    pub(crate) address: DeviceAddress,
    pub(crate) bytes: u64,
    pub(crate) token: Token,
    pub(crate) owner: ResourceKey,
    pub(crate) stream: StreamKey,
    pub(crate) tag: AllocTag,
}

/// What a resource writes on its blocks to find them again; nobody else reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Token {
    /// One word.
    pub first: u64,
    /// Another.
    pub second: u64,
}

/// Everything a block is made of; for those who write a resource.
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
    /// Whatever the resource needs to find it again.
    pub token: Token,
}

impl DeviceBlock {
    /// A block of a resource; for those who write one outside of this crate. [`into_parts`](Self::into_parts) undoes it.
    ///
    /// # Safety
    /// The parts speak of memory that belongs to the caller, or are what [`into_parts`](Self::into_parts) made of a block of the caller's,
    /// and no other block is made of them: whoever holds a block uses all its bytes and gives them back once. The resource with the key
    /// `owner`, if there is one, is the one that knows the token.
    #[inline]
    pub unsafe fn from_parts(owner: ResourceKey, parts: BlockParts) -> Self {
        Self::new(owner, parts)
    }

    /// A block of a resource of this crate, each of which makes one block of the memory it takes out of its tables.
    #[inline]
    pub(crate) fn new(owner: ResourceKey, parts: BlockParts) -> Self {
        let BlockParts { place, address, bytes, stream, tag, token } = parts;
        Self { place, address, bytes, stream, token, owner, tag }
    }

    /// The parts, if the block belongs to this resource; for those who write one.
    ///
    /// # Errors
    /// The block, unchanged, if it belongs to another resource.
    pub fn into_parts(self, owner: ResourceKey) -> Result<BlockParts, Self> {
        if self.owner != owner {
            return Err(self);
        }
        let Self { place, address, bytes, stream, token, owner: _, tag } = self;
        Ok(BlockParts { place, address, bytes, stream, tag, token })
    }

    /// Its name.
    pub fn id(&self) -> BlockId {
        BlockId(self.address)
    }

    /// The resource it belongs to.
    #[inline]
    pub fn owner(&self) -> ResourceKey {
        self.owner
    }

    /// Its first address.
    #[inline]
    pub fn address(&self) -> DeviceAddress {
        self.address
    }

    /// How many bytes it has.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where it lies, as a copy names it; none for a block of zero bytes.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// Where it lies in device memory; none for a block of zero bytes and for host memory.
    pub fn device_place(&self) -> Option<DevicePlace> {
        match self.place {
            Some(Place::Device(place)) => Some(place),
            _ => None,
        }
    }

    /// The stream it was asked for.
    #[inline]
    pub fn stream(&self) -> StreamKey {
        self.stream
    }

    /// What it is for.
    #[inline]
    pub fn tag(&self) -> AllocTag {
        self.tag
    }

    /// Makes it a block of another resource of the same stack; decorators do this on the way out and undo it on the
    /// way in, so that a block can only be freed where it was allocated.
    #[inline]
    pub(crate) fn rebound(mut self, owner: ResourceKey) -> Self {
        self.owner = owner;
        self
    }

    /// The part of it from `skip` on, `bytes` long; undone by [`widened`](Self::widened).
    pub(crate) fn narrowed(mut self, skip: u64, bytes: u64) -> Self {
        self.shift(skip, false);
        self.bytes = bytes;
        self
    }

    /// The block that [`narrowed`](Self::narrowed) made smaller.
    pub(crate) fn widened(mut self, skip: u64, bytes: u64) -> Self {
        self.shift(skip, true);
        self.bytes = bytes;
        self
    }

    fn shift(&mut self, by: u64, back: bool) {
        let moved = |at: u64| if back { at.wrapping_sub(by) } else { at.wrapping_add(by) };
        self.address = DeviceAddress(moved(self.address.0));
        match &mut self.place {
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
        let Self { bytes, stream, tag, .. } = self;
        write!(f, "{} ({bytes} bytes, {tag}, {stream})", self.id())
    }
}
