//! A limit on live bytes.

use std::fmt;

use super::{free_below, unwrap};
use crate::block::{DeviceBlock, ResourceKey};
use crate::byte_size::ByteSize;
use crate::charge_counter::Account;
use crate::error::{ErrorKind, FreeError, Result};
use crate::last_use::Stamps;
use crate::layer_view::LayerView;
use crate::out_of_memory::Exhausted;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;

/// Hands out no more than so many bytes at once.
///
/// It counts what owners asked for and still hold, nothing else; to limit what is taken from the device, give the heap
/// a [`Budget`](crate::Budget).
pub struct Limited<R> {
    key: ResourceKey,
    account: Account,
    inner: R,
}

impl<R: MemoryResource> Limited<R> {
    /// Puts a limit around a resource.
    pub fn new(limit_bytes: u64, inner: R) -> Self {
        Self { key: ResourceKey::fresh(), account: Account::new(limit_bytes), inner }
    }

    /// Bytes that are handed out.
    pub fn used_bytes(&self) -> u64 {
        self.account.used()
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Limited<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        self.account.try_charge(request.bytes).map_err(|(used, limit)| {
            let exhausted = Exhausted {
                limit_bytes: Some(limit),
                in_use_bytes: used,
                ..Exhausted::over("limit", request.bytes, &self.inner.accounting())
            };
            ErrorKind::from(exhausted)
        })?;
        self.account.settle(request.bytes);
        match self.inner.allocate(request) {
            Ok(block) => Ok(block.rebound(self.key)),
            Err(error) => {
                self.account.refund(request.bytes);
                Err(error)
            }
        }
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let bytes = block.bytes();
        free_below(unwrap(block, self.key, &self.inner)?, uses, self.key, &self.inner)?;
        self.account.refund(bytes);
        Ok(())
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

impl<R: MemoryResource> fmt::Display for Limited<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit({}, {})", ByteSize(self.account.limit()), self.inner)
    }
}
