//! The work by functions of the API.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use kiln_shim as _;

use super::table::{BYTES, KERNEL, Side, Work};

type Handle = *mut c_void;

unsafe extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuCtxCreate_v2(context: *mut Handle, flags: c_uint, device: c_int) -> c_int;
    fn cuCtxGetCurrent(context: *mut Handle) -> c_int;
    fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> c_int;
    fn cuStreamSynchronize(stream: Handle) -> c_int;
    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> c_int;
    fn cuEventCreate(event: *mut Handle, flags: c_uint) -> c_int;
    fn cuEventRecord(event: Handle, stream: Handle) -> c_int;
    fn cuEventQuery(event: Handle) -> c_int;
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int;
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Handle) -> c_int;
    fn cuMemFreeAsync(address: u64, stream: Handle) -> c_int;
    fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle) -> c_int;
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) -> c_int;
    fn cuModuleLoadData(module: *mut Handle, code: *const c_char) -> c_int;
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> c_int;
    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: Handle,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
}

/// What the work is done with.
pub(crate) struct Api {
    stream: Handle,
    event: Handle,
    function: Handle,
    to: u64,
    from: u64,
    kept: Box<[u64; 5]>,
    kept_places: Box<[*mut c_void; 5]>,
}

fn ok(code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("a function of the API answered {code}")) }
}

impl Api {
    pub(crate) fn new(code: &CStr) -> Result<Self, String> {
        let null = std::ptr::null_mut();
        let (mut context, mut stream, mut event, mut module, mut function) = (null, null, null, null, null);
        let (mut to, mut from) = (0, 0);
        // SAFETY: every pointer is to a place for its result, or to a text that ends with a zero byte.
        unsafe {
            ok(cuInit(0))?;
            ok(cuCtxCreate_v2(&raw mut context, 0, 0))?;
            ok(cuStreamCreate(&raw mut stream, 0))?;
            ok(cuEventCreate(&raw mut event, 0))?;
            ok(cuModuleLoadData(&raw mut module, code.as_ptr()))?;
            ok(cuModuleGetFunction(&raw mut function, module, KERNEL.as_ptr()))?;
            ok(cuMemAlloc_v2(&raw mut to, BYTES))?;
            ok(cuMemAlloc_v2(&raw mut from, BYTES))?;
            ok(cuMemsetD8Async(from, 1, BYTES, stream))?;
        }
        let mut kept = Box::new([to, from, to, from, 3]);
        let kept_places = Box::new(kept.each_mut().map(|value| std::ptr::from_mut(value).cast()));
        Ok(Self { stream, event, function, to, from, kept, kept_places })
    }

    fn launch(&self, parameters: *mut *mut c_void) -> c_int {
        let (function, stream) = (self.function, self.stream);
        // SAFETY: the parameters are as many as the kernel has, each of its size.
        unsafe { cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, std::ptr::null_mut()) }
    }
}

impl Side for Api {
    fn run(&mut self, work: Work) -> Result<(), String> {
        let (stream, event) = (self.stream, self.event);
        let mut place = 0;
        let mut context = std::ptr::null_mut();
        // SAFETY: every pointer is to a place for its result.
        ok(unsafe {
            match work {
                Work::CurrentContext => cuCtxGetCurrent(&raw mut context),
                Work::Record => cuEventRecord(event, stream),
                Work::WaitForEvent => cuStreamWaitEvent(stream, event, 0),
                Work::AskEvent => cuEventQuery(event),
                Work::Fill => cuMemsetD8Async(self.to, 1, BYTES, stream),
                Work::Copy => cuMemcpyDtoDAsync_v2(self.to, self.from, BYTES, stream),
                Work::AllocateAndFree => {
                    ok(cuMemAllocAsync(&raw mut place, BYTES, stream))?;
                    cuMemFreeAsync(place, stream)
                }
                Work::Launch => {
                    let mut values = *self.kept;
                    let mut places = values.each_mut().map(|value| std::ptr::from_mut(value).cast());
                    self.launch(places.as_mut_ptr())
                }
                Work::LaunchFromHeap => {
                    let places = self.kept_places.as_mut_ptr();
                    self.launch(places)
                }
            }
        })
    }

    fn settle(&mut self) -> Result<(), String> {
        // SAFETY: there is no pointer.
        ok(unsafe { cuStreamSynchronize(self.stream) })
    }
}
