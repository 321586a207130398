//! The driver called directly: what everything is measured against.

use std::ffi::c_void;

use cudarc::driver::sys;

use crate::Failure;

/// PTX of the kernels of these workloads.
pub(crate) const KERNELS: &str = include_str!("kernels.ptx");

/// A context of the first device, current in this thread.
pub(crate) struct Raw {
    context: sys::CUcontext,
    module: sys::CUmodule,
}

macro_rules! call {
    ($what:expr) => {{
        // SAFETY: each argument is a live handle, or a place to write to, made just before in this file.
        let code = unsafe { $what };
        if code != sys::CUresult::CUDA_SUCCESS {
            return Err(format!("{} answered {code:?}", stringify!($what)).into());
        }
    }};
}

impl Raw {
    /// The primary context, which kiln uses too.
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut context = std::ptr::null_mut();
        let mut module = std::ptr::null_mut();
        call!(sys::cuInit(0));
        call!(sys::cuDevicePrimaryCtxRetain(&mut context, 0));
        call!(sys::cuCtxSetCurrent(context));
        let image = std::ffi::CString::new(KERNELS)?;
        call!(sys::cuModuleLoadData(&mut module, image.as_ptr().cast()));
        Ok(Self { context, module })
    }

    /// Makes the context current in another thread.
    pub(crate) fn enter(&self) -> Result<(), Failure> {
        call!(sys::cuCtxSetCurrent(self.context));
        Ok(())
    }

    pub(crate) fn function(&self, name: &str) -> Result<sys::CUfunction, Failure> {
        Self::function_of(self.module, name)
    }

    /// A kernel of an image that is loaded for it.
    pub(crate) fn load(&self, image: &[u8], name: &str) -> Result<sys::CUfunction, Failure> {
        let mut module = std::ptr::null_mut();
        call!(sys::cuModuleLoadData(&mut module, image.as_ptr().cast()));
        Self::function_of(module, name)
    }

    fn function_of(module: sys::CUmodule, name: &str) -> Result<sys::CUfunction, Failure> {
        let name = std::ffi::CString::new(name)?;
        let mut function = std::ptr::null_mut();
        call!(sys::cuModuleGetFunction(&mut function, module, name.as_ptr()));
        Ok(function)
    }

    pub(crate) fn stream(&self) -> Result<sys::CUstream, Failure> {
        let mut stream = std::ptr::null_mut();
        call!(sys::cuStreamCreate(&mut stream, 1));
        Ok(stream)
    }

    pub(crate) fn event(&self) -> Result<sys::CUevent, Failure> {
        let mut event = std::ptr::null_mut();
        call!(sys::cuEventCreate(&mut event, 2));
        Ok(event)
    }

    /// An event that notes the time.
    pub(crate) fn timed_event(&self) -> Result<sys::CUevent, Failure> {
        let mut event = std::ptr::null_mut();
        call!(sys::cuEventCreate(&mut event, 0));
        Ok(event)
    }

    /// Bytes of the device that are free.
    pub(crate) fn free_bytes(&self) -> Result<usize, Failure> {
        let (mut free, mut total) = (0, 0);
        call!(sys::cuMemGetInfo_v2(&mut free, &mut total));
        Ok(free)
    }

    pub(crate) fn memory(&self, bytes: usize) -> Result<u64, Failure> {
        let mut address = 0;
        call!(sys::cuMemAlloc_v2(&mut address, bytes));
        Ok(address)
    }

    /// A graph of launches in a row, ready to be launched. It lives as long as the process.
    pub(crate) fn chain(
        &self,
        function: sys::CUfunction,
        arguments: &[u8],
        count: usize,
    ) -> Result<sys::CUgraphExec, Failure> {
        let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
        call!(sys::cuGraphCreate(&mut graph, 0));
        let mut size = arguments.len();
        let mut extra = packed(arguments, &mut size);
        let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: std::ptr::null_mut(),
            extra: extra.as_mut_ptr(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        let mut last: sys::CUgraphNode = std::ptr::null_mut();
        for at in 0..count {
            let (before, edges) = (last, usize::from(at > 0));
            call!(sys::cuGraphAddKernelNode_v2(&mut last, graph, &before, edges, &parameters));
        }
        call!(sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0));
        Ok(executable)
    }

    pub(crate) fn pinned(&self, bytes: usize) -> Result<*mut c_void, Failure> {
        let mut at = std::ptr::null_mut();
        call!(sys::cuMemHostAlloc(&mut at, bytes, 0));
        Ok(at)
    }

    pub(crate) fn free_pinned(&self, at: *mut c_void) -> Result<(), Failure> {
        call!(sys::cuMemFreeHost(at));
        Ok(())
    }
}

// SAFETY: a context and a module may be used from any thread; the driver locks by itself.
unsafe impl Sync for Raw {}

/// One block of one thread, arguments packed.
pub(crate) fn launch(
    function: sys::CUfunction,
    stream: sys::CUstream,
    arguments: &[u8],
) -> Result<(), Failure> {
    let mut size = arguments.len();
    let mut extra = packed(arguments, &mut size);
    call!(sys::cuLaunchKernel(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        stream,
        std::ptr::null_mut(),
        extra.as_mut_ptr()
    ));
    Ok(())
}

/// Packed arguments as a launch takes them.
fn packed(arguments: &[u8], size: &mut usize) -> [*mut c_void; 5] {
    // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END.
    [
        std::ptr::without_provenance_mut(1),
        arguments.as_ptr().cast_mut().cast(),
        std::ptr::without_provenance_mut(2),
        (&raw mut *size).cast(),
        std::ptr::null_mut(),
    ]
}

pub(crate) fn launch_graph(graph: sys::CUgraphExec, stream: sys::CUstream) -> Result<(), Failure> {
    call!(sys::cuGraphLaunch(graph, stream));
    Ok(())
}

/// Captures what this thread queues on a stream from now on.
pub(crate) fn begin_capture(stream: sys::CUstream) -> Result<(), Failure> {
    call!(sys::cuStreamBeginCapture_v2(stream, sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED));
    Ok(())
}

/// Ends a capture. The graph lives as long as the process.
pub(crate) fn end_capture(stream: sys::CUstream) -> Result<sys::CUgraphExec, Failure> {
    let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
    call!(sys::cuStreamEndCapture(stream, &mut graph));
    call!(sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0));
    Ok(executable)
}

/// The time from one event to another, which both have passed.
pub(crate) fn elapsed_ns(start: sys::CUevent, end: sys::CUevent) -> Result<f64, Failure> {
    let mut milliseconds = 0.0;
    call!(sys::cuEventElapsedTime(&mut milliseconds, start, end));
    Ok(f64::from(milliseconds) * 1e6)
}

pub(crate) fn record(event: sys::CUevent, stream: sys::CUstream) -> Result<(), Failure> {
    call!(sys::cuEventRecord(event, stream));
    Ok(())
}

pub(crate) fn wait(stream: sys::CUstream, event: sys::CUevent) -> Result<(), Failure> {
    call!(sys::cuStreamWaitEvent(stream, event, 0));
    Ok(())
}

pub(crate) fn synchronize(stream: sys::CUstream) -> Result<(), Failure> {
    call!(sys::cuStreamSynchronize(stream));
    Ok(())
}

/// Waits for the end of a stream by asking for an event behind it, and never gives the processor away.
pub(crate) fn poll(event: sys::CUevent, stream: sys::CUstream) -> Result<(), Failure> {
    record(event, stream)?;
    loop {
        // SAFETY: the event was made by this file and lives as long as the process.
        match unsafe { sys::cuEventQuery(event) } {
            sys::CUresult::CUDA_SUCCESS => return Ok(()),
            sys::CUresult::CUDA_ERROR_NOT_READY => std::hint::spin_loop(),
            code => return Err(format!("cuEventQuery answered {code:?}").into()),
        }
    }
}

/// Waits for everything of the context that is current.
pub(crate) fn settle() -> Result<(), Failure> {
    call!(sys::cuCtxSynchronize());
    Ok(())
}

pub(crate) fn upload(
    to: u64,
    from: *const c_void,
    bytes: usize,
    stream: sys::CUstream,
) -> Result<(), Failure> {
    call!(sys::cuMemcpyHtoDAsync_v2(to, from, bytes, stream));
    Ok(())
}

pub(crate) fn download(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: sys::CUstream,
) -> Result<(), Failure> {
    call!(sys::cuMemcpyDtoHAsync_v2(to, from, bytes, stream));
    Ok(())
}
