//! The allocators that can be measured.

use crate::block::DeviceBlock;
use crate::error::{Error, Result};
use crate::last_use::StreamRef;
use crate::request::AllocationRequest;
use crate::resource::{MemoryResource, MemoryResourceExt};

/// Something that allocates on one stream.
pub trait Allocator {
    /// What it gives out.
    type Block;
    /// What it says when something breaks.
    type Error;

    /// A block; none where there is not enough memory.
    ///
    /// # Errors
    /// Anything else that goes wrong.
    fn allocate(&mut self, bytes: u64) -> std::result::Result<Option<Self::Block>, Self::Error>;

    /// Takes a block back.
    ///
    /// # Errors
    /// Anything that goes wrong.
    fn free(&mut self, block: Self::Block) -> std::result::Result<(), Self::Error>;

    /// Allocates and frees at once. Where that takes nanoseconds, an allocator says here how its own callers do it,
    /// without the detour through `Option`.
    ///
    /// # Errors
    /// Anything that goes wrong.
    #[inline]
    fn pair(&mut self, bytes: u64) -> std::result::Result<(), Self::Error> {
        match self.allocate(bytes)? {
            Some(block) => self.free(block),
            None => Ok(()),
        }
    }
}

/// A resource, used on one stream.
#[derive(Clone, Copy)]
pub struct StreamAllocator<'a, R: ?Sized> {
    resource: &'a R,
    stream: StreamRef,
}

impl<'a, R: MemoryResource + ?Sized> StreamAllocator<'a, R> {
    /// A resource, used on one stream.
    pub fn new(resource: &'a R, stream: StreamRef) -> Self {
        Self { resource, stream }
    }
}

impl<R: MemoryResource + ?Sized> Allocator for StreamAllocator<'_, R> {
    type Block = DeviceBlock;
    type Error = Error;

    #[inline]
    fn allocate(&mut self, bytes: u64) -> Result<Option<DeviceBlock>> {
        match self.resource.allocate(&AllocationRequest::new(bytes, self.stream)) {
            Ok(block) => Ok(Some(block)),
            Err(error) if error.is_oom() => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn free(&mut self, block: DeviceBlock) -> Result<()> {
        self.resource.free(block).map_err(|failed| failed.error)
    }

    #[inline]
    fn pair(&mut self, bytes: u64) -> Result<()> {
        let block = self.resource.allocate(&AllocationRequest::new(bytes, self.stream))?;
        self.resource.free(block).map_err(|failed| failed.error)
    }
}
