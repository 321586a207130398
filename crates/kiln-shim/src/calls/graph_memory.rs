//! Memory that allocation nodes of graphs make.
//!
//! A node has its addresses from the moment it is added. The memory behind them is there as long as the node or an executable graph is; a launch makes it a new
//! block, of which nothing is known, and a free ends the block, so that uses before and after are found.

use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{
    Code, DevicePlace, Driver, MemoryId, MemoryPart, MemoryRequest, PartKind, PartLabel, StreamId,
};

use crate::boundary::{Answer, OrCode};
use crate::calls::context::Context;
use crate::calls::memory_map::{Allocation, Backing};
use crate::calls::pools::PoolProperties;
use crate::calls::process_state::ProcessState;

/// The structure `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocationParameters {
    pub(crate) pool: PoolProperties,
    pub(crate) access: usize,
    pub(crate) access_count: usize,
    pub(crate) bytes: usize,
    pub(crate) address: u64,
}

const _: () = assert!(
    size_of::<AllocationParameters>() == size_of::<cudarc::driver::sys::CUDA_MEM_ALLOC_NODE_PARAMS_v1>()
);

/// The memory of an allocation node.
pub(crate) struct GraphMemory {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// The memory below.
    pub(crate) below: MemoryId,
    /// As the program asked for it.
    pub(crate) given: AllocationParameters,
    driver: Arc<dyn Driver>,
    /// The block, between a launch and a free.
    block: Mutex<Option<MemoryId>>,
}

impl GraphMemory {
    /// Makes memory for a node, and puts it into the map.
    pub(crate) fn create(
        state: &ProcessState,
        context: &Context,
        given: AllocationParameters,
    ) -> Answer<Arc<Self>> {
        let bytes = given.bytes as u64;
        let memory = context.driver.allocate(MemoryRequest::Direct { bytes }).or_code()?;
        let address = memory.address.0;
        let made = Arc::new(Self {
            address,
            bytes,
            below: memory.id,
            given: AllocationParameters { address, ..given },
            driver: context.driver.clone(),
            block: Mutex::new(None),
        });
        let (number, driver) = (context.number, context.driver.clone());
        let backing = Backing::Graph(made.clone());
        state.memory.insert(Allocation::new(address, bytes, context.device, number, driver, backing));
        Ok(made)
    }

    /// Whether a launch made it and nothing freed it.
    pub(crate) fn is_live(&self) -> bool {
        self.block.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// A launch makes it.
    pub(crate) fn begin(&self, stream: StreamId) -> Answer {
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        if block.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        let part = MemoryPart {
            place: DevicePlace::from(self.below),
            bytes: self.bytes,
            stream: Some(stream),
            kind: PartKind::NewBlock,
            label: PartLabel::new("an allocation node of a graph"),
        };
        *block = Some(self.driver.allocate(MemoryRequest::Part(part)).or_code()?.id);
        Ok(())
    }

    /// A node of a graph or a call of the program frees it.
    pub(crate) fn end(&self, stream: Option<StreamId>) -> Answer {
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = block.take().ok_or(Code::INVALID_VALUE)?;
        self.driver.free(gone, stream).or_code()
    }

    /// Gives the memory below back; no work uses it any more.
    pub(crate) fn free(&self) -> Answer {
        if self.is_live() {
            self.end(None)?;
        }
        self.driver.free(self.below, None).or_code()
    }
}
