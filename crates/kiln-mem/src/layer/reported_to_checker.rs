//! Telling a device that checks accesses where blocks begin and end.
//!
//! The pages below a heap stay mapped, so a device that checks accesses cannot tell one block from the next, nor a live block from a freed one.
//! This layer names every block that leaves the stack to such a device, and says when it is freed. Then bytes of a block that were not written
//! are uninitialised, whatever the pages held before, and a use after the free is found with the name of the block.
//!
//! It is the outermost layer, so it covers every resource and every other layer. A stack on a device that checks nothing does not have it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Base, DeviceAddress, Driver, MemoryId, MemoryPart, MemoryRequest, PartKind, PartLabel, StreamId,
};

use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::last_use::{NO_USES, Stamps};
use crate::layer_view::{LayerView, Layers};
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::{MemoryResource, MemoryResourceExt};
use crate::resource_totals::Accounting;
use crate::tag::AllocTag;

/// Names each block to a device that checks accesses, when it is handed out and when it is freed.
///
/// [`Stack::build`](crate::Stack::build) and the runtime put it around the stacks of such a device. Blocks keep
/// the key of the resource below, and the layer is none of those that [`layers`](MemoryResourceExt::layers) shows.
pub struct Annotated<R: MemoryResource> {
    named: NamedParts,
    inner: R,
}

/// The live blocks of one tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaggedBlocks {
    /// What they are for.
    pub tag: AllocTag,
    /// How many.
    pub blocks: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl fmt::Display for TaggedBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.blocks == 1 { "" } else { "s" };
        write!(f, "{} block{plural} of {} bytes ({})", self.blocks, self.bytes, self.tag)
    }
}

/// The blocks that a device knows by name.
pub(crate) struct NamedParts {
    driver: Arc<dyn Driver>,
    parts: Mutex<HashMap<DeviceAddress, NamedPart>>,
}

#[derive(Clone, Copy)]
struct NamedPart {
    id: MemoryId,
    stream: StreamId,
    tag: AllocTag,
    bytes: u64,
}

impl<R: MemoryResource> Annotated<R> {
    /// Puts it around a resource of a device, which must check accesses.
    pub fn new(driver: Arc<dyn Driver>, inner: R) -> Self {
        Self { named: NamedParts { driver, parts: Mutex::default() }, inner }
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

impl Annotated<Arc<dyn MemoryResource>> {
    /// The same resource; with this layer around it, if the device checks accesses and the stack does not have the layer.
    pub fn around(driver: &Arc<dyn Driver>, resource: Arc<dyn MemoryResource>) -> Arc<dyn MemoryResource> {
        if !driver.info().features.access_checks
            || resource.layers().any(|layer| layer.named_parts().is_some())
        {
            return resource;
        }
        Arc::new(Self::new(driver.clone(), resource))
    }

    /// Ends a block that its owner keeps for later, without giving it back to its stack: for the device it is freed.
    pub fn set_aside(resource: &dyn MemoryResource, block: &DeviceBlock) {
        if let Some(named) = named_parts(resource) {
            named.end(block);
        }
    }

    /// Begins a block again that was [set aside](Self::set_aside): for the device it is new.
    ///
    /// # Errors
    /// What the driver answers; a lost device forgets all names, which is no error.
    pub fn hand_out_again(
        resource: &dyn MemoryResource,
        block: &DeviceBlock,
        stream: StreamId,
    ) -> Result<()> {
        match named_parts(resource) {
            Some(named) => Ok(named.begin(block, stream, PartKind::NewBlock)?),
            None => Ok(()),
        }
    }

    /// The live blocks of a stack by tag, most bytes first; none if the stack does not have the layer.
    pub fn live(resource: &dyn MemoryResource) -> Vec<TaggedBlocks> {
        named_parts(resource).map(NamedParts::by_tag).unwrap_or_default()
    }
}

fn named_parts(resource: &dyn MemoryResource) -> Option<&NamedParts> {
    Layers::from(resource.layer()).find_map(|layer| layer.named_parts())
}

impl NamedParts {
    /// Names a block. Host memory and memory of other devices have no name here, and a lost device forgets all names.
    fn begin(&self, block: &DeviceBlock, stream: StreamId, kind: PartKind) -> kiln_driver::Result<()> {
        let Some(place) = block.device_place().filter(|_| !block.is_empty()) else { return Ok(()) };
        let key = match place.base {
            Base::Memory(id) => id.device(),
            Base::Reservation(id) => id.device(),
        };
        if key != self.driver.info().key {
            return Ok(());
        }
        let (tag, bytes) = (block.tag(), block.bytes());
        let label = PartLabel::new(tag.name());
        let part = MemoryPart { place, bytes, stream: Some(stream), kind, label };
        let named = match self.driver.allocate(MemoryRequest::Part(part)) {
            // The stream may be gone before the blocks that were asked for it.
            Err(error) if error.is_refused() => {
                self.driver.allocate(MemoryRequest::Part(MemoryPart { stream: None, ..part }))
            }
            named => named,
        };
        match named {
            Ok(named) => {
                let before =
                    self.parts().insert(block.address(), NamedPart { id: named.id, stream, tag, bytes });
                if let Some(before) = before {
                    // It was freed below this layer.
                    let _ = self.driver.free(before.id, None);
                }
                Ok(())
            }
            Err(error) if error.is_sticky() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends a block; what is known of it, if it had a name. A block of no bytes has none, and may have the address of another block.
    fn end(&self, block: &DeviceBlock) -> Option<NamedPart> {
        if block.is_empty() {
            return None;
        }
        let part = self.parts().remove(&block.address())?;
        // A lost device forgets all names.
        let _ = self.driver.free(part.id, Some(part.stream)).or_else(|_| self.driver.free(part.id, None));
        Some(part)
    }

    fn by_tag(&self) -> Vec<TaggedBlocks> {
        let mut tags: HashMap<AllocTag, TaggedBlocks> = HashMap::new();
        for NamedPart { tag, bytes, .. } in self.parts().values() {
            let sum = tags.entry(*tag).or_insert(TaggedBlocks { tag: *tag, blocks: 0, bytes: 0 });
            (sum.blocks, sum.bytes) = (sum.blocks + 1, sum.bytes + bytes);
        }
        let mut tags: Vec<TaggedBlocks> = tags.into_values().collect();
        tags.sort_by_key(|sum| (std::cmp::Reverse(sum.bytes), sum.tag));
        tags
    }

    fn parts(&self) -> MutexGuard<'_, HashMap<DeviceAddress, NamedPart>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NamedParts {
    fn drop(&mut self) {
        for part in std::mem::take(&mut *self.parts()).into_values() {
            let _ = self.driver.free(part.id, None);
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Annotated<R> {
    fn key(&self) -> ResourceKey {
        self.inner.key()
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let block = self.inner.allocate(request)?;
        let begun = self.named.begin(&block, request.stream.id(), PartKind::NewBlock);
        if let Err(error) = begun {
            // The block was never used; if it cannot be freed either, the device is lost.
            let _ = self.inner.deallocate(block, &NO_USES);
            return Err(error.into());
        }
        Ok(block)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.inner.key() {
            return self.inner.deallocate(block, uses);
        }
        // Ended first: once the block is free, its address may be another block's.
        let ended = self.named.end(&block);
        self.inner.deallocate(block, uses).inspect_err(|failed| {
            if let Some(part) = ended {
                // The block stays with its owner. If it cannot be named again, nothing is said about it.
                let _ = self.named.begin(&failed.block, part.stream, PartKind::KeptBlock);
            }
        })
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.inner.reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        self.inner.layer().annotated(&self.named)
    }
}

/// It is not part of the text of a stack: which devices have it is not a choice.
impl<R: MemoryResource> fmt::Display for Annotated<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
