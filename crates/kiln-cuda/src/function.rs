//! Kernels: their attributes, and how many blocks fit.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{
    Code, Dim3, Error, FunctionAttributes, FunctionId, Limits, Occupancy, ParameterSpan, Result,
};

use crate::context::Context;
use crate::convert;
use crate::device::CudaDevice;
use crate::host_functions::HostCallee;
use crate::libcuda_symbols::Api;
use crate::module::LoadedCode;
use crate::native_handle::Native;
use crate::operation::LoadedOperation;

use sys::CUfunction_attribute as Attribute;

/// A parameter that is aligned to more than 16 bytes has at least so many.
const WIDE_PARAMETER_BYTES: u32 = 32;

/// A kernel as a handle finds it.
// In this order: a launch reads what comes before the attributes.
#[repr(C)]
pub(crate) struct Kernel {
    raw: Native<sys::CUfunc_st>,
    /// Where the last parameter ends, if the driver told.
    argument_bytes: Option<usize>,
    has_wide_parameters: bool,
    most_grid: Dim3,
    most_block: Dim3,
    /// Threads of a block.
    most_threads: u32,
    /// Dynamic shared memory that the driver was told to allow. It only grows.
    allowed_shared_bytes: AtomicU32,
    attributes: FunctionAttributes,
    /// Taken to let it grow, so that the driver ends with the largest value.
    growing: Mutex<()>,
    /// More than this no block can have.
    most_shared_bytes: u32,
    code: Arc<LoadedCode>,
    /// The function of the host it is, if it is one.
    host: Option<HostCallee>,
}

impl CudaDevice {
    pub(crate) fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        const CALL: &str = "occupancy";
        let api = self.context.enter(CALL)?;
        let kernel = self.functions.pin(function).map_err(|error| error.seen_by(CALL))?;
        let most = kernel.attributes.max_threads_per_block;
        if block_threads == 0 || block_threads > most {
            let what = format!("a block of {block_threads} threads");
            return Err(Error::invalid(CALL, what, "take at least 1 and at most what the kernel allows"));
        }
        kernel.allow_shared(CALL, &self.context, dynamic_shared_bytes)?;
        if kernel.operation().is_some() || kernel.host().is_some() {
            // The library chooses grid and block, and the host has none; a launch says 1 for both.
            return Ok(Occupancy {
                blocks_per_multiprocessor: 1,
                suggested_block_threads: 1,
                suggested_grid_blocks: 1,
            });
        }
        let blocks = kernel.resident_blocks(CALL, &self.context, api, block_threads, dynamic_shared_bytes)?;
        if blocks == 0 {
            let what =
                format!("{block_threads} threads with {dynamic_shared_bytes} shared bytes fit nowhere");
            return Err(Error::invalid(CALL, what, "use fewer threads or less shared memory"));
        }
        let (mut grid, mut block): (c_int, c_int) = (0, 0);
        // SAFETY: the out-parameters are live locals and the kernel is pinned; without a callback the same amount of
        // shared memory is taken for every block size.
        let status = unsafe {
            (api.occupancy_suggest)(
                &mut grid,
                &mut block,
                kernel.raw.raw(),
                std::ptr::null(),
                dynamic_shared_bytes as usize,
                0,
            )
        };
        self.context.check(CALL, status)?;
        Ok(Occupancy {
            blocks_per_multiprocessor: blocks,
            suggested_block_threads: unsigned(block),
            suggested_grid_blocks: unsigned(grid),
        })
    }
}

impl Kernel {
    /// Asks the driver about a kernel it just found.
    pub(crate) fn read(
        call: &'static str,
        api: &Api,
        raw: Native<sys::CUfunc_st>,
        code: &Arc<LoadedCode>,
        context: &Context,
        limits: &Limits,
    ) -> Result<Self> {
        let ask = |attribute: Attribute| {
            let mut value: c_int = 0;
            // SAFETY: the out-parameter is a live local, and the module of the kernel is held by the caller.
            let status = unsafe {
                (api.function_attribute)(&mut value, convert::function_attribute(attribute), raw.raw())
            };
            context.check(call, status).map(|()| unsigned(value))
        };
        if let Some(function_load) = api.function_load {
            // SAFETY: the module of the kernel is held by the caller.
            let status = unsafe { function_load(raw.raw()) };
            context.check(call, status)?;
        }
        let parameters = read_parameters(call, api, raw, context)?;
        let argument_bytes = parameters.as_ref().map(|spans| {
            spans.iter().map(|span| span.offset as usize + span.bytes as usize).max().unwrap_or(0)
        });
        let has_wide_parameters = parameters
            .as_ref()
            .is_some_and(|spans| spans.iter().any(|span| span.bytes >= WIDE_PARAMETER_BYTES));
        let static_shared_bytes = ask(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let max_threads_per_block = ask(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        Ok(Self {
            raw,
            attributes: FunctionAttributes {
                max_threads_per_block,
                registers: ask(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                static_shared_bytes,
                local_bytes: ask(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
                constant_bytes: ask(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
                workspace_bytes: 0,
                parameters,
            },
            argument_bytes,
            has_wide_parameters,
            most_grid: limits.max_grid,
            most_block: limits.max_block,
            most_threads: max_threads_per_block.min(limits.max_threads_per_block),
            allowed_shared_bytes: AtomicU32::new(ask(
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            )?),
            growing: Mutex::new(()),
            most_shared_bytes: limits.shared_bytes_per_block_optin.saturating_sub(static_shared_bytes),
            code: code.clone(),
            host: None,
        })
    }

    /// The function of a library operation. No launch of it is plain, so that each is looked at more closely.
    pub(crate) fn of_operation(code: &Arc<LoadedCode>, operation: &LoadedOperation) -> Self {
        Self::of_none(code, operation.attributes(), None)
    }

    /// A function of the host, of which no launch is plain either.
    pub(crate) fn of_host(code: &Arc<LoadedCode>, callee: HostCallee) -> Self {
        Self::of_none(code, callee.attributes(), Some(callee))
    }

    /// What is launched and is no kernel.
    fn of_none(code: &Arc<LoadedCode>, attributes: FunctionAttributes, host: Option<HostCallee>) -> Self {
        let one = Dim3::new(1, 1, 1);
        Self {
            raw: Native::NULL,
            attributes,
            argument_bytes: None,
            has_wide_parameters: false,
            most_grid: one,
            most_block: one,
            most_threads: 1,
            allowed_shared_bytes: AtomicU32::new(0),
            growing: Mutex::new(()),
            most_shared_bytes: 0,
            code: code.clone(),
            host,
        }
    }

    /// The library operation it is, if it is one.
    pub(crate) fn operation(&self) -> Option<&LoadedOperation> {
        self.code.operation()
    }

    /// The function of the host it is, if it is one.
    pub(crate) fn host(&self) -> Option<&HostCallee> {
        self.host.as_ref()
    }

    /// The kernel as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUfunction {
        self.raw.raw()
    }

    /// What the driver knows of it.
    pub(crate) fn attributes(&self) -> &FunctionAttributes {
        &self.attributes
    }

    /// The largest grid the device runs, and the largest block.
    #[inline]
    pub(crate) fn most_extents(&self) -> (Dim3, Dim3) {
        (self.most_grid, self.most_block)
    }

    /// Threads a block of it can have.
    #[inline]
    pub(crate) fn most_threads(&self) -> u32 {
        self.most_threads
    }

    /// Where the last parameter ends, if the driver told.
    pub(crate) fn argument_bytes(&self) -> Option<usize> {
        self.argument_bytes
    }

    /// Whether a parameter may be aligned to more than 16 bytes, of which there is no word but its size.
    #[inline(always)]
    pub(crate) fn has_wide_parameters(&self) -> bool {
        self.has_wide_parameters
    }

    /// The code it is part of, which a graph node holds.
    pub(crate) fn code(&self) -> &Arc<LoadedCode> {
        &self.code
    }

    /// Makes sure that blocks may have that much dynamic shared memory. The driver is told only when it is more than ever before.
    #[inline]
    pub(crate) fn allow_shared(&self, call: &'static str, context: &Context, bytes: u32) -> Result<()> {
        if self.allows_shared(bytes) { Ok(()) } else { self.grow_shared(call, context, bytes) }
    }

    /// Whether the driver already allows blocks that much dynamic shared memory.
    #[inline(always)]
    pub(crate) fn allows_shared(&self, bytes: u32) -> bool {
        bytes <= self.allowed_shared_bytes.load(Ordering::Relaxed)
    }

    /// How many blocks of so many threads a multiprocessor holds at once.
    pub(crate) fn resident_blocks(
        &self,
        call: &'static str,
        context: &Context,
        api: &Api,
        block_threads: u32,
        shared_bytes: u32,
    ) -> Result<u32> {
        let mut blocks: c_int = 0;
        let threads = c_int::try_from(block_threads).unwrap_or(c_int::MAX);
        // SAFETY: the out-parameter is a live local and the caller pins the kernel.
        let status = unsafe { (api.occupancy)(&mut blocks, self.raw(), threads, shared_bytes as usize) };
        context.check(call, status)?;
        Ok(unsigned(blocks))
    }

    #[cold]
    fn grow_shared(&self, call: &'static str, context: &Context, bytes: u32) -> Result<()> {
        let api = context.enter(call)?;
        if bytes > self.most_shared_bytes {
            let what = format!(
                "{bytes} bytes of dynamic shared memory; this kernel can have {}",
                self.most_shared_bytes
            );
            return Err(Error::invalid(call, what, "ask for less"));
        }
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= self.allowed_shared_bytes.load(Ordering::Relaxed) {
            return Ok(());
        }
        let attribute =
            convert::function_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        // SAFETY: the caller pins the kernel.
        let status = unsafe { (api.function_set)(self.raw(), attribute, bytes as c_int) };
        context.check(call, status)?;
        self.allowed_shared_bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// Asks for one parameter after the other until there is none; nothing where the driver cannot tell.
fn read_parameters(
    call: &'static str,
    api: &Api,
    raw: Native<sys::CUfunc_st>,
    context: &Context,
) -> Result<Option<Vec<ParameterSpan>>> {
    let Some(function_parameter) = api.function_parameter else { return Ok(None) };
    let mut spans = Vec::new();
    loop {
        let (mut offset, mut bytes) = (0usize, 0usize);
        // SAFETY: the out-parameters are live locals, and the module of the kernel is held by the caller; an index past
        // the last parameter is refused.
        match Code(unsafe { function_parameter(raw.raw(), spans.len(), &mut offset, &mut bytes) }) {
            Code::SUCCESS => spans.push(ParameterSpan { offset: offset as u32, bytes: bytes as u32 }),
            Code::INVALID_VALUE => return Ok(Some(spans)),
            Code::NOT_SUPPORTED => return Ok(None),
            code => return Err(context.failure(call, code.0, None)),
        }
    }
}

/// A count the driver gives as a signed number.
fn unsigned(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
