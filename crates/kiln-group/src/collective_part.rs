//! One collective of a call, with its buffers.

use kiln_operation::{Collective, CollectiveKind};
use kiln_runtime::{Element, GpuRef};

use crate::error::{GroupError, Result};
use crate::few::UpToTwo;

/// One collective with its buffers.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) collective: Collective,
    pub(crate) count: u64,
    pub(crate) buffers: UpToTwo<GpuRef<u8>>,
}

impl Part {
    pub(crate) fn new(collective: Collective, count: u64) -> Self {
        Self { collective, count, buffers: UpToTwo::default() }
    }

    /// The same with another buffer.
    pub(crate) fn with<T: Element>(self, buffer: &GpuRef<T>) -> Result<Self> {
        self.with_bytes(buffer.cast::<u8>().map_err(|source| GroupError::Rank { rank: 0, source })?)
    }

    /// The same with another buffer of bytes.
    pub(crate) fn with_bytes(mut self, buffer: GpuRef<u8>) -> Result<Self> {
        match self.buffers.push(buffer) {
            true => Ok(self),
            false => Err(GroupError::Collective {
                what: format!("{} with more than two buffers", self.collective.name()),
                next: "give each rank its own buffers",
            }),
        }
    }

    /// Whether it is between two ranks alone.
    pub(crate) fn is_pairwise(&self) -> bool {
        matches!(self.collective.kind(), CollectiveKind::Send | CollectiveKind::Recv)
    }
}
