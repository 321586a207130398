//! Failing on purpose, for tests.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{free_below, unwrap};
use crate::block::{DeviceBlock, ResourceKey};
use crate::byte_size::ByteSize;
use crate::error::{ErrorKind, FreeError, Result};
use crate::last_use::Stamps;
use crate::layer_view::LayerView;
use crate::out_of_memory::Exhausted;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;

/// Which calls fail. Counts begin at 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FailPlan {
    /// Every so many allocations one fails; 0 is never.
    pub every_allocation: u64,
    /// Every so many frees one fails; 0 is never.
    pub every_free: u64,
    /// Allocations of more than so many bytes fail; 0 is no limit.
    pub above_bytes: u64,
}

/// Fails as it was told to, and passes everything else on. A call that fails has not reached the resource below.
pub struct Failing<R> {
    key: ResourceKey,
    plan: FailPlan,
    allocations: AtomicU64,
    frees: AtomicU64,
    inner: R,
}

impl<R: MemoryResource> Failing<R> {
    /// Puts a plan around a resource.
    pub fn new(plan: FailPlan, inner: R) -> Self {
        let (allocations, frees) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { key: ResourceKey::fresh(), plan, allocations, frees, inner }
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Failing<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let too_large = self.plan.above_bytes > 0 && request.bytes > self.plan.above_bytes;
        if is_due(&self.allocations, self.plan.every_allocation) || too_large {
            return Err(ErrorKind::from(Exhausted::new("fail", request.bytes)).into());
        }
        Ok(self.inner.allocate(request)?.rebound(self.key))
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let block = unwrap(block, self.key, &self.inner)?;
        if is_due(&self.frees, self.plan.every_free) {
            let busy =
                kiln_driver::Refusal::Busy { handle: block.id().to_string(), why: "fail was told to".into() };
            let error = kiln_driver::Error::refused("deallocate", busy);
            return Err(FreeError::new(block.rebound(self.key), ErrorKind::from(error)));
        }
        free_below(block, uses, self.key, &self.inner)
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

impl<R: MemoryResource> fmt::Display for Failing<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailPlan { every_allocation, every_free, above_bytes } = self.plan;
        write!(f, "fail({every_allocation}, ")?;
        if every_free > 0 || above_bytes > 0 {
            write!(f, "{every_free}, ")?;
        }
        if above_bytes > 0 {
            write!(f, "{}, ", ByteSize(above_bytes))?;
        }
        write!(f, "{})", self.inner)
    }
}

fn is_due(count: &AtomicU64, every: u64) -> bool {
    let number = count.fetch_add(1, Ordering::Relaxed) + 1;
    every > 0 && number.is_multiple_of(every)
}
