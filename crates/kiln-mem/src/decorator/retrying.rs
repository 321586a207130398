//! Trying again after making room.

use std::fmt;

use super::{free_below, unwrap};
use crate::accounting::Accounting;
use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::ladder::{Relief, Rung, Step};
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::Stamps;

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

    fn allocate(&self, request: &Request) -> Result<DeviceBlock> {
        let mut steps = Vec::new();
        let mut last = match self.inner.allocate(request) {
            Ok(block) => return Ok(block.rebound(self.key)),
            Err(error) => error,
        };
        for _ in 0..self.rounds {
            let tried = steps.len();
            for rung in Rung::ALL {
                if !last.is_retryable() {
                    return Err(last);
                }
                let relief = match self.inner.reap(rung) {
                    Err(error) if error.is_sticky() => return Err(error),
                    // A step that could not be taken brought nothing; that memory is out is still what is wrong.
                    answer => answer.unwrap_or_default(),
                };
                steps.push(Step { rung, relief });
                if relief.is_nothing() {
                    continue;
                }
                match self.inner.allocate(request) {
                    Ok(block) => return Ok(block.rebound(self.key)),
                    Err(error) => last = error,
                }
            }
            if steps[tried..].iter().all(|step| step.relief.is_nothing()) {
                // Another round would bring nothing either.
                break;
            }
        }
        if let Some(exhausted) = last.exhausted_mut() {
            exhausted.steps.extend(steps);
        }
        Err(last)
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        free_below(unwrap(block, self.key, &self.inner)?, uses, self.key, &self.inner)
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reap(&self, rung: Rung) -> Result<Relief> {
        self.inner.reap(rung)
    }
}

impl<R: MemoryResource> fmt::Display for Retrying<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retry({}, {})", self.rounds, self.inner)
    }
}
