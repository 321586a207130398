//! One collective of a call, with its buffers.

use kiln_operation::Collective;
use kiln_runtime::{Element, GpuRef};

use crate::error::{GroupError, Result};

/// One collective with its buffers.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) collective: Collective,
    pub(crate) count: u64,
    pub(crate) buffers: Vec<GpuRef<u8>>,
}

impl Part {
    pub(crate) fn new(collective: Collective, count: usize) -> Self {
        Self { collective, count: count as u64, buffers: Vec::new() }
    }

    /// The same with another buffer.
    pub(crate) fn with<T: Element>(mut self, buffer: &GpuRef<T>) -> Result<Self> {
        self.buffers.push(buffer.cast::<u8>().map_err(|source| GroupError::Rank { rank: 0, source })?);
        Ok(self)
    }
}
