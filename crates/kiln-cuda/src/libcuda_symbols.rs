//! The entry points of libcuda, looked up one by one.
//!
//! The bindings cudarc generates are used for the shapes of structs and the numbers of enums only. Its loader
//! stops the process when a symbol is missing, and its result type is a Rust enum that a newer driver could fill
//! with a number it does not have. Here a missing symbol is an answer that names it, and a result is an integer.
//!
//! Each symbol is the versioned name that drivers from CUDA 12.4 on export, which is the one `cuda.h` of that
//! version maps the plain name to. The table never outlives the library, because the library is never unloaded.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_ushort, c_void};

use cudarc::driver::sys;
use libloading::Library;

/// The result of a call of libcuda, as an integer: 0 is success.
pub(crate) type Status = i32;

type Pointer = sys::CUdeviceptr;

macro_rules! api {
    (
        required { $($name:ident = $symbol:literal ($($argument:ty),* $(,)?);)* }
        optional { $($extra:ident = $extra_symbol:literal ($($extra_argument:ty),* $(,)?);)* }
    ) => {
        /// The entry points kiln calls.
        // In the order in which they are listed: the calls that queue work are in one cache line.
        #[repr(C, align(64))]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> Status,)*
            $(pub(crate) $extra: Option<unsafe extern "C" fn($($extra_argument),*) -> Status>,)*
        }

        impl Api {
            /// Looks all of them up; the error is the first one that is missing.
            pub(crate) fn resolve(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the signature is the one `cuda.h` declares for this symbol, and the caller keeps the library loaded
                    // until the process ends.
                    $($name: unsafe { symbol(library, $symbol) }.ok_or($symbol)?,)*
                    // SAFETY: as above.
                    $($extra: unsafe { symbol(library, $extra_symbol) },)*
                })
            }
        }
    };
}

api! {
    required {
        // What is called once for each launch.
        launch = "cuLaunchKernel"(
            sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream,
            *mut *mut c_void, *mut *mut c_void,
        );
        stream_wait = "cuStreamWaitEvent"(sys::CUstream, sys::CUevent, c_uint);
        event_record = "cuEventRecord"(sys::CUevent, sys::CUstream);

        // Start and devices.
        init = "cuInit"(c_uint);
        device_count = "cuDeviceGetCount"(*mut c_int);
        device = "cuDeviceGet"(*mut sys::CUdevice, c_int);
        device_name = "cuDeviceGetName"(*mut c_char, c_int, sys::CUdevice);
        device_uuid = "cuDeviceGetUuid_v2"(*mut sys::CUuuid, sys::CUdevice);
        device_memory = "cuDeviceTotalMem_v2"(*mut usize, sys::CUdevice);
        device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, sys::CUdevice);

        // The context.
        context_retain = "cuDevicePrimaryCtxRetain"(*mut sys::CUcontext, sys::CUdevice);
        context_release = "cuDevicePrimaryCtxRelease_v2"(sys::CUdevice);
        context_current = "cuCtxGetCurrent"(*mut sys::CUcontext);
        context_set = "cuCtxSetCurrent"(sys::CUcontext);
        priority_range = "cuCtxGetStreamPriorityRange"(*mut c_int, *mut c_int);

        // Pages.
        page_granularity = "cuMemGetAllocationGranularity"(*mut usize, *const sys::CUmemAllocationProp, c_uint);
        reserve = "cuMemAddressReserve"(*mut Pointer, usize, usize, Pointer, c_ulonglong);
        unreserve = "cuMemAddressFree"(Pointer, usize);
        pages_create = "cuMemCreate"(
            *mut sys::CUmemGenericAllocationHandle, usize, *const sys::CUmemAllocationProp, c_ulonglong,
        );
        pages_release = "cuMemRelease"(sys::CUmemGenericAllocationHandle);
        map = "cuMemMap"(Pointer, usize, usize, sys::CUmemGenericAllocationHandle, c_ulonglong);
        unmap = "cuMemUnmap"(Pointer, usize);
        set_access = "cuMemSetAccess"(Pointer, usize, *const sys::CUmemAccessDesc, usize);
        pages_export = "cuMemExportToShareableHandle"(
            *mut c_void, sys::CUmemGenericAllocationHandle, c_uint, c_ulonglong,
        );
        pages_import = "cuMemImportFromShareableHandle"(
            *mut sys::CUmemGenericAllocationHandle, *mut c_void, c_uint,
        );

        // Plain memory.
        memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
        allocate = "cuMemAlloc_v2"(*mut Pointer, usize);
        free = "cuMemFree_v2"(Pointer);
        pool_create = "cuMemPoolCreate"(*mut sys::CUmemoryPool, *const sys::CUmemPoolProps);
        pool_destroy = "cuMemPoolDestroy"(sys::CUmemoryPool);
        pool_set = "cuMemPoolSetAttribute"(sys::CUmemoryPool, c_uint, *mut c_void);
        pool_trim = "cuMemPoolTrimTo"(sys::CUmemoryPool, usize);
        pool_allocate = "cuMemAllocFromPoolAsync"(*mut Pointer, usize, sys::CUmemoryPool, sys::CUstream);
        pool_free = "cuMemFreeAsync"(Pointer, sys::CUstream);
        host_allocate = "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
        host_free = "cuMemFreeHost"(*mut c_void);
        host_register = "cuMemHostRegister_v2"(*mut c_void, usize, c_uint);
        host_unregister = "cuMemHostUnregister"(*mut c_void);

        // Streams and events.
        stream_create = "cuStreamCreateWithPriority"(*mut sys::CUstream, c_uint, c_int);
        stream_destroy = "cuStreamDestroy_v2"(sys::CUstream);
        stream_query = "cuStreamQuery"(sys::CUstream);
        event_create = "cuEventCreate"(*mut sys::CUevent, c_uint);
        event_destroy = "cuEventDestroy_v2"(sys::CUevent);
        event_query = "cuEventQuery"(sys::CUevent);
        event_elapsed = "cuEventElapsedTime"(*mut f32, sys::CUevent, sys::CUevent);

        // Code.
        module_load = "cuModuleLoadDataEx"(
            *mut sys::CUmodule, *const c_void, c_uint, *mut c_uint, *mut *mut c_void,
        );
        module_unload = "cuModuleUnload"(sys::CUmodule);
        module_function = "cuModuleGetFunction"(*mut sys::CUfunction, sys::CUmodule, *const c_char);
        module_global = "cuModuleGetGlobal_v2"(*mut Pointer, *mut usize, sys::CUmodule, *const c_char);
        function_attribute = "cuFuncGetAttribute"(*mut c_int, c_int, sys::CUfunction);
        function_set = "cuFuncSetAttribute"(sys::CUfunction, c_int, c_int);
        occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, sys::CUfunction, c_int, usize);
        occupancy_suggest = "cuOccupancyMaxPotentialBlockSize"(
            *mut c_int, *mut c_int, sys::CUfunction, *const c_void, usize, c_int,
        );
        occupancy_clusters = "cuOccupancyMaxActiveClusters"(
            *mut c_int, sys::CUfunction, *const sys::CUlaunchConfig,
        );

        // Work.
        launch_shaped = "cuLaunchKernelEx"(
            *const sys::CUlaunchConfig, sys::CUfunction, *mut *mut c_void, *mut *mut c_void,
        );
        copy_up = "cuMemcpyHtoDAsync_v2"(Pointer, *const c_void, usize, sys::CUstream);
        copy_down = "cuMemcpyDtoHAsync_v2"(*mut c_void, Pointer, usize, sys::CUstream);
        copy_across = "cuMemcpyDtoDAsync_v2"(Pointer, Pointer, usize, sys::CUstream);
        copy_any = "cuMemcpyAsync"(Pointer, Pointer, usize, sys::CUstream);
        copy_peer = "cuMemcpyPeerAsync"(
            Pointer, sys::CUcontext, Pointer, sys::CUcontext, usize, sys::CUstream,
        );
        fill_u8 = "cuMemsetD8Async"(Pointer, u8, usize, sys::CUstream);
        fill_u16 = "cuMemsetD16Async"(Pointer, c_ushort, usize, sys::CUstream);
        fill_u32 = "cuMemsetD32Async"(Pointer, c_uint, usize, sys::CUstream);

        // Graphs.
        graph_create = "cuGraphCreate"(*mut sys::CUgraph, c_uint);
        graph_destroy = "cuGraphDestroy"(sys::CUgraph);
        graph_instantiate = "cuGraphInstantiateWithFlags"(*mut sys::CUgraphExec, sys::CUgraph, c_ulonglong);
        graph_exec_destroy = "cuGraphExecDestroy"(sys::CUgraphExec);
        graph_launch = "cuGraphLaunch"(sys::CUgraphExec, sys::CUstream);
        graph_add_empty = "cuGraphAddEmptyNode"(
            *mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize,
        );
        graph_add_copy = "cuGraphAddMemcpyNode"(
            *mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize, *const sys::CUDA_MEMCPY3D,
            sys::CUcontext,
        );
        graph_add_fill = "cuGraphAddMemsetNode"(
            *mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize,
            *const sys::CUDA_MEMSET_NODE_PARAMS, sys::CUcontext,
        );
        graph_add_kernel = "cuGraphAddKernelNode_v2"(
            *mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize,
            *const sys::CUDA_KERNEL_NODE_PARAMS,
        );
        graph_add_child = "cuGraphAddChildGraphNode"(
            *mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize, sys::CUgraph,
        );
        graph_kernel_attribute = "cuGraphKernelNodeSetAttribute"(
            sys::CUgraphNode, c_uint, *const sys::CUlaunchAttributeValue,
        );
        graph_set_copy = "cuGraphMemcpyNodeSetParams"(sys::CUgraphNode, *const sys::CUDA_MEMCPY3D);
        graph_set_fill = "cuGraphMemsetNodeSetParams"(sys::CUgraphNode, *const sys::CUDA_MEMSET_NODE_PARAMS);
        graph_set_kernel = "cuGraphKernelNodeSetParams_v2"(
            sys::CUgraphNode, *const sys::CUDA_KERNEL_NODE_PARAMS,
        );
        graph_exec_set_copy = "cuGraphExecMemcpyNodeSetParams"(
            sys::CUgraphExec, sys::CUgraphNode, *const sys::CUDA_MEMCPY3D, sys::CUcontext,
        );
        graph_exec_set_fill = "cuGraphExecMemsetNodeSetParams"(
            sys::CUgraphExec, sys::CUgraphNode, *const sys::CUDA_MEMSET_NODE_PARAMS, sys::CUcontext,
        );
        graph_exec_set_kernel = "cuGraphExecKernelNodeSetParams_v2"(
            sys::CUgraphExec, sys::CUgraphNode, *const sys::CUDA_KERNEL_NODE_PARAMS,
        );
        graph_exec_set_child = "cuGraphExecChildGraphNodeSetParams"(
            sys::CUgraphExec, sys::CUgraphNode, sys::CUgraph,
        );
    }
    optional {
        // Tensor maps.
        tensor_map_tiled = "cuTensorMapEncodeTiled"(
            *mut sys::CUtensorMap, c_uint, c_uint, *mut c_void, *const u64, *const u64, *const c_uint, *const c_uint, c_uint, c_uint, c_uint, c_uint,
        );
        tensor_map_im2col = "cuTensorMapEncodeIm2col"(
            *mut sys::CUtensorMap, c_uint, c_uint, *mut c_void, *const u64, *const u64, *const c_int, *const c_int, c_uint, c_uint, *const c_uint,
            c_uint, c_uint, c_uint, c_uint,
        );
        // The identity of the whole device where `device_uuid` names a slice of it.
        device_uuid_whole = "cuDeviceGetUuid"(*mut sys::CUuuid, sys::CUdevice);
        // The offset of a parameter in the packed arguments.
        function_parameter = "cuFuncGetParamInfo"(sys::CUfunction, usize, *mut usize, *mut usize);
        // Brings a kernel to the device now; drivers otherwise do so at its first launch, which then may wait.
        function_load = "cuFuncLoad"(sys::CUfunction);
        // The names of a module's kernels, for the error that says one is not among them.
        module_function_count = "cuModuleGetFunctionCount"(*mut c_uint, sys::CUmodule);
        module_functions = "cuModuleEnumerateFunctions"(*mut sys::CUfunction, c_uint, sys::CUmodule);
        function_name = "cuFuncGetName"(*mut *const c_char, sys::CUfunction);
        // What a library queues, as a graph.
        stream_begin_capture = "cuStreamBeginCapture_v2"(sys::CUstream, c_uint);
        stream_end_capture = "cuStreamEndCapture"(sys::CUstream, *mut sys::CUgraph);
        // Functions of the host in the order of a stream.
        peer_can_access = "cuDeviceCanAccessPeer"(*mut c_int, sys::CUdevice, sys::CUdevice);
        peer_attribute = "cuDeviceGetP2PAttribute"(*mut c_int, c_uint, sys::CUdevice, sys::CUdevice);
        peer_enable = "cuCtxEnablePeerAccess"(sys::CUcontext, c_uint);
        peer_disable = "cuCtxDisablePeerAccess"(sys::CUcontext);
        host_function = "cuLaunchHostFunc"(sys::CUstream, unsafe extern "C" fn(*mut c_void), *mut c_void);
        stream_callback = "cuStreamAddCallback"(
            sys::CUstream, unsafe extern "C" fn(sys::CUstream, Status, *mut c_void), *mut c_void, c_uint,
        );
        graph_add_host = "cuGraphAddHostNode"(
            *mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize,
            *const sys::CUDA_HOST_NODE_PARAMS,
        );
        graph_set_host = "cuGraphHostNodeSetParams"(sys::CUgraphNode, *const sys::CUDA_HOST_NODE_PARAMS);
        graph_exec_set_host = "cuGraphExecHostNodeSetParams"(
            sys::CUgraphExec, sys::CUgraphNode, *const sys::CUDA_HOST_NODE_PARAMS,
        );
        // The linker, for machine code of PTX that is to be kept.
        link_create = "cuLinkCreate_v2"(c_uint, *mut c_uint, *mut *mut c_void, *mut sys::CUlinkState);
        link_add = "cuLinkAddData_v2"(
            sys::CUlinkState, c_uint, *mut c_void, usize, *const c_char, c_uint, *mut c_uint, *mut *mut c_void,
        );
        link_complete = "cuLinkComplete"(sys::CUlinkState, *mut *mut c_void, *mut usize);
        link_destroy = "cuLinkDestroy"(sys::CUlinkState);
    }
}

/// The entry point that tells the version of a driver. It is looked up before the others, because an old driver lacks some of them and its
/// version is the better error.
pub(crate) fn version_entry(
    library: &Library,
) -> Result<unsafe extern "C" fn(*mut c_int) -> Status, &'static str> {
    const SYMBOL: &str = "cuDriverGetVersion";
    // SAFETY: the signature is the one `cuda.h` declares; the caller calls it while it holds the library.
    unsafe { symbol(library, SYMBOL) }.ok_or(SYMBOL)
}

/// # Safety
/// `F` is the type of the function `name` in this library, and it is not called after the library is unloaded.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: the caller says that `F` is the symbol's type; copying the pointer out ends the borrow, and the caller
    // keeps the library loaded.
    unsafe { library.get::<F>(name.as_bytes()) }.ok().map(|found| *found)
}
