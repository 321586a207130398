//! A memory pool of the driver, one for each device.
//!
//! The default pool belongs to the whole process; another library may set its threshold or trim it. A separate pool keeps freed memory until it is trimmed, so
//! a warm pool needs nothing from the operating system.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::{Error, Result};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::libcuda_symbols::Api;
use crate::native_handle::Native;

/// A pool that is destroyed with the device.
pub(crate) struct Pool {
    raw: Native<sys::CUmemPoolHandle_st>,
    context: Arc<Context>,
}

impl CudaDevice {
    /// The pool, made when it is first needed. Of two threads that make one at the same time, one is thrown away.
    pub(crate) fn pool(&self, call: &'static str, api: &Api) -> Result<&Pool> {
        if !self.info.features.memory_pool {
            return Err(Error::unsupported(call, "pool memory", "this device has none; allocate directly"));
        }
        match self.pool.get() {
            Some(pool) => Ok(pool),
            None => {
                let made = Pool::create(call, api, &self.context)?;
                Ok(self.pool.get_or_init(|| made))
            }
        }
    }

    pub(crate) fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        const CALL: &str = "trim_pool";
        let api = self.context.enter(CALL)?;
        let pool = self.pool(CALL, api)?;
        let keep = usize::try_from(keep_bytes).unwrap_or(usize::MAX);
        // SAFETY: the pool lives as long as the device.
        let status = unsafe { (api.pool_trim)(pool.raw(), keep) };
        self.context.check(CALL, status)
    }
}

impl Pool {
    /// The pool as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUmemoryPool {
        self.raw.raw()
    }

    fn create(call: &'static str, api: &Api, context: &Arc<Context>) -> Result<Self> {
        let properties = convert::pool_properties(context.device());
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter and the properties are live locals and the context is current.
        let status = unsafe { (api.pool_create)(raw.slot(), &properties) };
        context.check(call, status)?;
        let pool = Self { raw, context: context.clone() };
        let mut threshold = u64::MAX;
        // SAFETY: this attribute is a 64-bit number, and the driver reads it during the call.
        let status = unsafe {
            (api.pool_set)(pool.raw(), convert::POOL_RELEASE_THRESHOLD, (&raw mut threshold).cast::<c_void>())
        };
        context.check(call, status)?;
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; the driver keeps the pool until memory from it is freed.
        self.context.release(|api| unsafe { (api.pool_destroy)(self.raw.raw()) });
    }
}
