//! cudarc's own way to allocate, with its tracking of uses on.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys};
use kiln_mem::workload::Allocator;

use crate::Failure;

/// cudarc on one stream.
pub(crate) struct CudarcSlices {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

impl CudarcSlices {
    /// cudarc on a separate stream.
    pub(crate) fn new() -> Result<Self, Failure> {
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        Ok(Self { context, stream })
    }

    /// The same context on another stream.
    pub(crate) fn on_new_stream(&self) -> Result<Self, Failure> {
        Ok(Self { context: self.context.clone(), stream: self.context.new_stream()? })
    }
}

impl Allocator for CudarcSlices {
    type Block = CudaSlice<u8>;
    type Error = String;

    #[inline]
    fn allocate(&mut self, bytes: u64) -> Result<Option<CudaSlice<u8>>, String> {
        // SAFETY: nothing reads the memory.
        match unsafe { self.stream.alloc::<u8>(bytes as usize) } {
            Ok(slice) => Ok(Some(slice)),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    #[inline]
    fn free(&mut self, block: CudaSlice<u8>) -> Result<(), String> {
        drop(block);
        Ok(())
    }
}
