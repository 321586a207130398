//! Plain device memory: direct, from the driver's pool, or another library's.

use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{
    DeviceAddress, DeviceMemory, Error, MemoryId, MemoryInfo, MemoryRequest, ModuleId, Result, StreamId,
};

use crate::context::Context;
use crate::device::CudaDevice;
use crate::libcuda_symbols::Api;

/// Memory as a handle finds it.
pub(crate) struct Block {
    address: u64,
    bytes: u64,
    origin: Origin,
    context: Arc<Context>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Direct,
    Pool,
    Foreign,
    /// A variable, freed with its module.
    Module(ModuleId),
    /// Freed already.
    Freed,
}

impl CudaDevice {
    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        const CALL: &str = "memory_info";
        let api = self.context.enter(CALL)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both out-parameters are live locals and the context is current.
        let status = unsafe { (api.memory_info)(&mut free, &mut total) };
        self.context.check(CALL, status)?;
        Ok(MemoryInfo { free_bytes: free as u64, total_bytes: total as u64 })
    }

    pub(crate) fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        const CALL: &str = "allocate";
        let api = self.context.enter(CALL)?;
        let (address, bytes, origin) = match request {
            MemoryRequest::Direct { bytes } => {
                (self.allocate_direct(CALL, api, bytes)?, bytes, Origin::Direct)
            }
            MemoryRequest::Pool { bytes, stream } => {
                (self.allocate_pooled(CALL, api, bytes, stream)?, bytes, Origin::Pool)
            }
            MemoryRequest::Foreign(memory) => (memory.address().0, memory.bytes(), Origin::Foreign),
            other => return Err(Error::unsupported(CALL, "this kind of memory", format!("{other:?}"))),
        };
        self.insert_block(address, bytes, origin)
    }

    /// On a lost device the handle becomes stale as always, and there is nothing to free.
    pub(crate) fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        const CALL: &str = "free";
        self.context.check_process(CALL)?;
        let origin = self.memory.pin(memory).map_err(|error| error.seen_by(CALL))?.origin;
        let wrong = |what: String, next| Err(Error::invalid(CALL, what, next));
        match (origin, stream) {
            (Origin::Module(module), _) => {
                wrong(format!("{memory} is a variable of {module}"), "destroy the module instead")
            }
            (Origin::Pool, None) => wrong(
                format!("{memory} is pool memory and no stream was named"),
                "name the stream to free it on",
            ),
            (Origin::Pool, Some(stream)) => self.free_pooled(CALL, memory, stream),
            (_, Some(stream)) => wrong(
                format!("{memory} is not pool memory and {stream} was named"),
                "free it without a stream",
            ),
            // The block is freed when it is dropped, here or by the last call that holds it.
            (_, None) => self.memory.remove(memory).map(drop).map_err(|error| error.seen_by(CALL)),
        }
    }

    /// Names a variable of a module.
    pub(crate) fn insert_variable(&self, module: ModuleId, address: u64, bytes: u64) -> Result<DeviceMemory> {
        self.insert_block(address, bytes, Origin::Module(module))
    }

    /// An allocation larger than the device can never succeed, and sizes near 2^64 confuse some drivers, so such a
    /// request is answered here.
    pub(crate) fn check_size(&self, call: &'static str, bytes: u64) -> Result<usize> {
        if bytes == 0 {
            return Err(Error::invalid(call, "zero bytes", "ask for at least one"));
        }
        match usize::try_from(bytes) {
            Ok(size) if bytes <= self.info.total_memory_bytes => Ok(size),
            _ => Err(Error::out_of_memory(call, bytes, self.context.free_bytes())),
        }
    }

    fn allocate_direct(&self, call: &'static str, api: &Api, bytes: u64) -> Result<u64> {
        let size = self.check_size(call, bytes)?;
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: the out-parameter is a live local and the context is current.
        let allocate = || unsafe { (api.allocate)(&mut address, size) };
        match self.context.allocate_after_frees(&self.clock, allocate) {
            0 => Ok(address),
            status => Err(self.context.memory_failure(call, status, bytes)),
        }
    }

    fn allocate_pooled(&self, call: &'static str, api: &Api, bytes: u64, stream: StreamId) -> Result<u64> {
        let pool = self.pool(call, api)?;
        let stream = self.streams.pin(stream).map_err(|error| error.seen_by(call))?;
        let size = self.check_size(call, bytes)?;
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: the out-parameter is a live local, the pool lives as long as the device, and the stream is pinned.
        let allocate = || unsafe { (api.pool_allocate)(&mut address, size, pool.raw(), stream.raw()) };
        match self.context.allocate_after_frees(&self.clock, allocate) {
            0 => Ok(address),
            status => Err(self.context.memory_failure(call, status, bytes)),
        }
    }

    fn free_pooled(&self, call: &'static str, memory: MemoryId, stream: StreamId) -> Result<()> {
        let stream = self.streams.pin(stream).map_err(|error| error.seen_by(call))?;
        // If another call still uses the block, the caller has broken its promise; the block is then freed when that call returns, which is later than
        // requested and never too early.
        let removed = self.memory.remove(memory).map_err(|error| error.seen_by(call))?;
        let Some(mut block) = removed else { return Ok(()) };
        self.context.release(|api| {
            // SAFETY: the block came from the pool, nothing else names it any more, and the stream is pinned.
            let status = unsafe { (api.pool_free)(block.address, stream.raw()) };
            if status == 0 {
                block.origin = Origin::Freed;
            }
            status
        });
        Ok(())
    }

    fn insert_block(&self, address: u64, bytes: u64, origin: Origin) -> Result<DeviceMemory> {
        let block = Block { address, bytes, origin, context: self.context.clone() };
        let id = self.memory.insert(block)?;
        Ok(DeviceMemory { id, address: DeviceAddress(address), bytes })
    }
}

impl Block {
    /// The first address.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if matches!(self.origin, Origin::Direct | Origin::Pool) {
            let address = self.address;
            // SAFETY: the driver gave this address out and nothing names it any more. The call takes pool memory too.
            self.context.free_when_idle(move |api| unsafe { (api.free)(address) });
        }
    }
}
