//! Kernels of modules: what they are, and what can be set of them.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::CUfunction_attribute as A;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::Out;
use crate::calls::first_launches::FirstLaunch;
use crate::calls::kernel_memory::PointerParameter;
use crate::calls::libraries;
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

/// A kernel.
pub(crate) struct Function {
    pub(crate) context: u64,
    pub(crate) device: u32,
    /// The handle of its module.
    pub(crate) module: RawHandle,
    pub(crate) below: kiln_driver::Function,
    pub(crate) name: CString,
    /// The pointers among its parameters, where launches are followed.
    pub(crate) pointers: Vec<PointerParameter>,
    /// How long its packed arguments are.
    pub(crate) argument_bytes: usize,
    /// What was set for launches by calls of the first versions.
    pub(crate) first_launch: Mutex<FirstLaunch>,
    /// Dynamic shared memory that a launch may ask for; negative while the program set none.
    dynamic_shared_bytes: AtomicI32,
    carveout: AtomicI32,
}

impl Function {
    pub(crate) fn new(
        context: u64,
        device: u32,
        module: RawHandle,
        below: kiln_driver::Function,
        (name, pointers): (CString, Vec<PointerParameter>),
    ) -> Self {
        let (dynamic_shared_bytes, carveout) = (AtomicI32::new(-1), AtomicI32::new(-1));
        let spans = below.attributes.parameters.as_deref().unwrap_or_default();
        let argument_bytes = spans.iter().map(|span| (span.offset + span.bytes) as usize).max().unwrap_or(0);
        Self {
            context,
            device,
            module,
            below,
            name,
            pointers,
            argument_bytes,
            first_launch: Mutex::default(),
            dynamic_shared_bytes,
            carveout,
        }
    }

    /// Dynamic shared memory that a launch may ask for.
    pub(crate) fn most_dynamic_shared_bytes(&self, state: &ProcessState) -> Answer<u32> {
        match u32::try_from(self.dynamic_shared_bytes.load(Ordering::Relaxed)) {
            Ok(bytes) => Ok(bytes),
            Err(_) => {
                let limit = state.device(self.device as c_int)?.driver.info().limits.shared_bytes_per_block;
                Ok(limit.saturating_sub(self.below.attributes.static_shared_bytes))
            }
        }
    }

    /// The value of an attribute.
    pub(crate) fn attribute(&self, state: &ProcessState, number: c_uint) -> Answer<c_int> {
        let attributes = &self.below.attributes;
        let capability = state.device(self.device as c_int)?.driver.info().capability;
        let version = (capability.major * 10 + capability.minor) as c_int;
        let is = |attribute: A| attribute as c_uint == number;
        Ok(if is(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) {
            attributes.max_threads_per_block as c_int
        } else if is(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) {
            attributes.static_shared_bytes as c_int
        } else if is(A::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) {
            attributes.constant_bytes as c_int
        } else if is(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) {
            attributes.local_bytes as c_int
        } else if is(A::CU_FUNC_ATTRIBUTE_NUM_REGS) {
            attributes.registers as c_int
        } else if is(A::CU_FUNC_ATTRIBUTE_PTX_VERSION) || is(A::CU_FUNC_ATTRIBUTE_BINARY_VERSION) {
            version
        } else if is(A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
            self.most_dynamic_shared_bytes(state)? as c_int
        } else if is(A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
            self.carveout.load(Ordering::Relaxed)
        } else if number < A::CU_FUNC_ATTRIBUTE_MAX as c_uint {
            0
        } else {
            return Err(Code::INVALID_VALUE);
        })
    }

    pub(crate) fn set_attribute(&self, state: &ProcessState, number: c_uint, value: c_int) -> Answer {
        if number == A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_uint {
            let limits = &state.device(self.device as c_int)?.driver.info().limits;
            let most =
                limits.shared_bytes_per_block_optin.saturating_sub(self.below.attributes.static_shared_bytes);
            if u32::try_from(value).is_ok_and(|value| value <= most) {
                self.dynamic_shared_bytes.store(value, Ordering::Relaxed);
                return Ok(());
            }
        } else if number == A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as c_uint {
            if (-1..=100).contains(&value) {
                self.carveout.store(value, Ordering::Relaxed);
                return Ok(());
            }
        } else if number > A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as c_uint
            && number < A::CU_FUNC_ATTRIBUTE_MAX as c_uint
        {
            // Clusters are given with the launch.
            return Err(Code::NOT_SUPPORTED);
        }
        Err(Code::INVALID_VALUE)
    }
}

/// The kernel of a handle; the handle of a kernel of a library stands for its kernel in the current context.
pub(crate) fn function(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Function>> {
    if let Some(function) = state.functions.get(handle) {
        return Ok(function);
    }
    let handle = libraries::function_of_kernel(state, handle)?;
    state.functions.get(handle).ok_or(Code::INVALID_HANDLE)
}

/// Offset and size of a parameter.
pub(crate) fn parameter(function: &Function, index: usize, offset: Out<usize>, size: Out<usize>) -> Answer {
    let spans = function.below.attributes.parameters.as_ref();
    let span = spans.and_then(|spans| spans.get(index)).ok_or(Code::INVALID_VALUE)?;
    offset.set(span.offset as usize)?;
    size.set_if_wanted(span.bytes as usize);
    Ok(())
}

driver_api! {
    fn cuFuncGetAttribute(out: Out<c_int>, number: c_uint, handle: RawHandle) {
        let state = state()?;
        out.check()?;
        out.set(function(state, handle)?.attribute(state, number)?)
    }

    fn cuFuncSetAttribute(handle: RawHandle, number: c_uint, value: c_int) {
        let state = state()?;
        function(state, handle)?.set_attribute(state, number, value)
    }

    fn cuFuncSetCacheConfig(handle: RawHandle, configuration: c_uint) {
        function(state()?, handle)?;
        if configuration > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuFuncSetSharedMemConfig(handle: RawHandle, configuration: c_uint) {
        function(state()?, handle)?;
        if configuration > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuFuncGetModule(out: Out<RawHandle>, handle: RawHandle) {
        out.set(function(state()?, handle)?.module)
    }

    fn cuFuncGetName(out: Out<*const c_char>, handle: RawHandle) {
        let state = state()?;
        // The text lives as long as the function is in the table.
        out.set(function(state, handle)?.name.as_ptr())
    }

    fn cuFuncGetParamInfo(handle: RawHandle, index: usize, offset: Out<usize>, size: Out<usize>) {
        parameter(&*function(state()?, handle)?, index, offset, size)
    }

    fn cuFuncIsLoaded(out: Out<c_uint>, handle: RawHandle) {
        function(state()?, handle)?;
        out.set(1)
    }

    fn cuFuncLoad(handle: RawHandle) {
        function(state()?, handle).map(|_| ())
    }
}
