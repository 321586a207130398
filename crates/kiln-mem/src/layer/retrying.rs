//! Reclaims memory and retries an allocation that failed.

use std::fmt;

use super::{free_below, unwrap};
use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::last_use::Stamps;
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimAttempt, ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;

/// When memory is out, asks the resources below to make room, step by step, and tries again after each that helped.
///
/// A heap does this by itself; this is for stacks over resources that do not, and for limits above a heap.
pub struct Retrying<R> {
    key: ResourceKey,
    rounds: u32,
    inner: R,
}

impl<R: MemoryResource> Retrying<R> {
    /// Goes down the ladder so many times.
    pub fn new(rounds: u32, inner: R) -> Self {
        Self { key: ResourceKey::fresh(), rounds, inner }
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Retrying<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let mut attempts = Vec::new();
        let mut last = match self.inner.allocate(request) {
            Ok(block) => return Ok(block.rebound(self.key)),
            Err(error) => error,
        };
        for _ in 0..self.rounds {
            let tried = attempts.len();
            for step in ReclaimStep::ALL {
                if !last.is_retryable() {
                    return Err(last);
                }
                let reclaimed = match self.inner.reclaim(step) {
                    Err(error) if error.is_sticky() => return Err(error),
                    // A step that could not be taken brought nothing; that memory is out is still what is wrong.
                    answer => answer.unwrap_or_default(),
                };
                attempts.push(ReclaimAttempt { step, reclaimed });
                if reclaimed.is_nothing() {
                    continue;
                }
                match self.inner.allocate(request) {
                    Ok(block) => return Ok(block.rebound(self.key)),
                    Err(error) => last = error,
                }
            }
            if attempts[tried..].iter().all(|step| step.reclaimed.is_nothing()) {
                // Another round would bring nothing either.
                break;
            }
        }
        if let Some(exhausted) = last.exhausted_mut() {
            exhausted.attempts.extend(attempts);
        }
        Err(last)
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

impl<R: MemoryResource> fmt::Display for Retrying<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retry({}, {})", self.rounds, self.inner)
    }
}
