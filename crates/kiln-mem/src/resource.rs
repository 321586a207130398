//! The trait every source of memory and every layer over one implements.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::last_use::{NO_USES, Stamps};
use crate::layer_view::{LayerView, Layers};
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource_totals::Accounting;

/// A source of memory. `Display` prints the stack, such as `budget(8 GiB, stats(heap))`.
///
/// A layer is a resource around a resource. It gives its own key to the blocks that pass through it and takes
/// back only those, so what it wrote down when a block went out is there when it comes back.
///
/// Every call may come from any thread at any time. A call that fails has changed nothing.
pub trait MemoryResource: fmt::Display + Send + Sync + 'static {
    /// Who it is; the blocks it gives out carry this key.
    fn key(&self) -> ResourceKey;

    /// Hands out a block. Work submitted to the request's stream after this call may use it.
    ///
    /// # Errors
    /// Out of memory, once everything that could be done about it was done; refused for an alignment or a size that
    /// no block can have; what the driver answers.
    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock>;

    /// Takes a block back. Everything submitted to its own stream so far may still use it; `uses` names the last use
    /// on each other stream.
    ///
    /// # Errors
    /// The block comes back with the error: it belongs to another resource, or the driver refused.
    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError>;

    /// What it and everything below it hold.
    fn accounting(&self) -> Accounting;

    /// Takes one step to make memory available and says how much came of it.
    ///
    /// # Errors
    /// What the driver answers.
    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed>;

    /// What this layer has collected, and the resource below it. A resource with nothing to show and nothing below leaves this out.
    fn layer(&self) -> LayerView<'_> {
        LayerView::base()
    }
}

/// What every resource can do in terms of what it must do.
pub trait MemoryResourceExt: MemoryResource {
    /// Bytes that are live or pending.
    fn bytes_outstanding(&self) -> u64 {
        self.accounting().outstanding_bytes()
    }

    /// Makes everything available again whose work is known to be done.
    ///
    /// # Errors
    /// What the driver answers.
    fn reap_pending(&self) -> Result<Reclaimed> {
        self.reclaim(ReclaimStep::Completed)
    }

    /// Gives what is not used back to the device.
    ///
    /// # Errors
    /// What the driver answers.
    fn trim(&self) -> Result<Reclaimed> {
        let mut reclaimed = Reclaimed::default();
        for step in [ReclaimStep::ThreadCaches, ReclaimStep::Completed, ReclaimStep::IdlePages] {
            reclaimed = reclaimed + self.reclaim(step)?;
        }
        Ok(reclaimed)
    }

    /// The layers of the stack, this one first.
    fn layers(&self) -> Layers<'_> {
        Layers::from(self.layer())
    }

    /// What the outermost layer of a kind has collected; none if the stack has no such layer. [`LayerView`] says which types there are.
    fn find<T: Any>(&self) -> Option<&T> {
        self.find_all().next()
    }

    /// What all layers of a kind have collected, outermost first.
    fn find_all<T: Any>(&self) -> impl Iterator<Item = &T> {
        self.layers().filter_map(|layer| layer.collected())
    }

    /// Takes a block back that was used on its own stream only.
    ///
    /// # Errors
    /// As for [`MemoryResource::deallocate`].
    #[inline]
    fn free(&self, block: DeviceBlock) -> std::result::Result<(), FreeError> {
        self.deallocate(block, &NO_USES)
    }
}

impl<R: MemoryResource + ?Sized> MemoryResourceExt for R {}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource + ?Sized> MemoryResource for Arc<R> {
    fn key(&self) -> ResourceKey {
        (**self).key()
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        (**self).allocate(request)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        (**self).deallocate(block, uses)
    }

    fn accounting(&self) -> Accounting {
        (**self).accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        (**self).reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        (**self).layer()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource + ?Sized> MemoryResource for Box<R> {
    fn key(&self) -> ResourceKey {
        (**self).key()
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        (**self).allocate(request)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        (**self).deallocate(block, uses)
    }

    fn accounting(&self) -> Accounting {
        (**self).accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        (**self).reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        (**self).layer()
    }
}
