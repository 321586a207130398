//! Allocates with a larger alignment than was requested.

use std::fmt;

use super::{free_below, unwrap};
use crate::block::{DeviceBlock, ResourceKey};
use crate::byte_size::ByteSize;
use crate::error::{ErrorKind, FreeError, MemoryRefusal, Result};
use crate::last_use::Stamps;
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;

/// Aligns every block to at least so many bytes.
pub struct Aligned<R> {
    key: ResourceKey,
    align: u64,
    inner: R,
}

impl<R: MemoryResource> Aligned<R> {
    /// Puts an alignment around a resource.
    ///
    /// # Errors
    /// Refused for an alignment that no block can have.
    pub fn new(align: u64, inner: R) -> Result<Self> {
        if !align.is_power_of_two() || align > AllocationRequest::MAX_ALIGN {
            return Err(ErrorKind::from(MemoryRefusal::Alignment {
                align,
                most: AllocationRequest::MAX_ALIGN,
            })
            .into());
        }
        Ok(Self { key: ResourceKey::fresh(), align, inner })
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Aligned<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        if !request.align.is_power_of_two() {
            return Err(ErrorKind::from(MemoryRefusal::Alignment {
                align: request.align,
                most: AllocationRequest::MAX_ALIGN,
            })
            .into());
        }
        let block = self.inner.allocate(&request.align(request.align.max(self.align)))?;
        Ok(block.rebound(self.key))
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        free_below(unwrap(block, self.key, &self.inner)?, uses, self.key, &self.inner)
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.inner.reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::around(&self.inner)
    }
}

impl<R: MemoryResource> fmt::Display for Aligned<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "align({}, {})", ByteSize(self.align), self.inner)
    }
}
