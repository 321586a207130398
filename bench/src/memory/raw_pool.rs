//! `cuMemAllocAsync` and `cuMemFreeAsync`, from a pool that keeps what it has.

use std::sync::Arc;

use cudarc::driver::sys;
use kiln_mem::workload::Allocator;

use crate::Failure;
use crate::raw_driver::Raw;

/// A pool of the driver's.
struct Pool {
    raw: Raw,
    pool: sys::CUmemoryPool,
}

// SAFETY: a pool may be used from any thread; the driver locks by itself.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// A pool, used on a separate stream.
#[derive(Clone)]
pub(crate) struct RawPool {
    pool: Arc<Pool>,
    stream: sys::CUstream,
}

// SAFETY: a stream may be used from any thread; the driver locks by itself.
unsafe impl Send for RawPool {}

impl RawPool {
    /// A pool that gives nothing back and takes no more than so many bytes; 0 is no limit.
    pub(crate) fn new(limit_bytes: u64) -> Result<Self, Failure> {
        let raw = Raw::new()?;
        let props = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: 0,
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: limit_bytes as usize,
            reserved: [0; 56],
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: the properties and the place to write to live until the call returns.
        check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut pool, &props) })?;
        let mut kept = u64::MAX;
        let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool was made above, and this attribute is a number of 64 bits.
        check("cuMemPoolSetAttribute", unsafe {
            sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut kept).cast())
        })?;
        let stream = raw.stream()?;
        Ok(Self { pool: Arc::new(Pool { raw, pool }), stream })
    }

    /// The same pool on another stream.
    pub(crate) fn on_new_stream(&self) -> Result<Self, Failure> {
        Ok(Self { pool: self.pool.clone(), stream: self.pool.raw.stream()? })
    }

    /// The stream.
    pub(crate) fn stream(&self) -> sys::CUstream {
        self.stream
    }

    /// Makes the context current in this thread.
    pub(crate) fn enter(&self) -> Result<(), Failure> {
        self.pool.raw.enter()
    }

    /// The most bytes the pool had from the device.
    pub(crate) fn peak_reserved_bytes(&self) -> Result<u64, Failure> {
        let mut bytes = 0_u64;
        let high = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
        // SAFETY: the pool is live, and this attribute is a number of 64 bits.
        check("cuMemPoolGetAttribute", unsafe {
            sys::cuMemPoolGetAttribute(self.pool.pool, high, (&raw mut bytes).cast())
        })?;
        Ok(bytes)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the pool is not used any more. Its answer changes nothing.
        let _ = unsafe { sys::cuMemPoolDestroy(self.pool) };
    }
}

impl Allocator for RawPool {
    type Block = u64;
    type Error = String;

    #[inline]
    fn allocate(&mut self, bytes: u64) -> Result<Option<u64>, String> {
        let mut at = 0;
        // SAFETY: pool and stream are live, and the address is written before the call returns.
        let code =
            unsafe { sys::cuMemAllocFromPoolAsync(&mut at, bytes as usize, self.pool.pool, self.stream) };
        match code {
            sys::CUresult::CUDA_SUCCESS => Ok(Some(at)),
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            code => Err(format!("cuMemAllocFromPoolAsync answered {code:?}")),
        }
    }

    #[inline]
    fn free(&mut self, block: u64) -> Result<(), String> {
        // SAFETY: the block came from `allocate` and is given back once.
        match unsafe { sys::cuMemFreeAsync(block, self.stream) } {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(format!("cuMemFreeAsync answered {code:?}")),
        }
    }
}

fn check(call: &str, code: sys::CUresult) -> Result<(), Failure> {
    if code == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{call} answered {code:?}").into()) }
}
