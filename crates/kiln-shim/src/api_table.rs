//! All 558 functions that the library exports: 463 are implemented, 95 answer that they are not supported.
//!
//! Written by `cargo xtask driver-table` from the bindings of cudarc; do not edit. Each name has the CUDA version that has it first.

use std::ffi::c_int;

/// A function that the library exports.
pub(crate) struct EntryPoint {
    pub(crate) name: &'static str,
    /// The CUDA version that has it first, such as 12040 for 12.4.
    pub(crate) since: c_int,
    address: unsafe extern "C" fn() -> c_int,
}

impl EntryPoint {
    /// Where it is, for a program that calls it with the arguments that the API says.
    pub(crate) fn address(&self) -> usize {
        self.address as usize
    }
}

/// The names of all functions that the library exports.
pub fn exported_names() -> impl Iterator<Item = &'static str> {
    ENTRY_POINTS.iter().map(|entry| entry.name)
}

macro_rules! api_table {
    (implemented: $($ours:ident @ $ours_since:literal,)* ; unsupported: $($other:ident @ $other_since:literal,)* ;) => {
        /// The functions as symbols; the table needs their addresses alone.
        mod symbols {
            use std::ffi::c_int;

            unsafe extern "C" {
                $(pub(super) fn $ours() -> c_int;)*
            }
        }

        /// Functions that are not implemented. They take no arguments: a caller in C passes them in vain.
        mod unsupported {
            use std::ffi::c_int;

            $(
                #[unsafe(no_mangle)]
                pub(super) extern "C" fn $other() -> c_int {
                    crate::boundary::unsupported(stringify!($other))
                }
            )*
        }

        /// All of them.
        pub(crate) static ENTRY_POINTS: &[EntryPoint] = &[
            $(EntryPoint { name: stringify!($ours), since: $ours_since, address: symbols::$ours },)*
            $(EntryPoint { name: stringify!($other), since: $other_since, address: unsupported::$other },)*
        ];
    };
}

api_table! {
    implemented:
        cuArray3DCreate_v2@3020, cuArray3DGetDescriptor_v2@3020, cuArrayCreate_v2@3020, cuArrayDestroy@2000,
        cuArrayGetDescriptor_v2@3020, cuArrayGetMemoryRequirements@11060, cuArrayGetPlane@2000,
        cuArrayGetSparseProperties@2000, cuCtxCreate_v2@3020, cuCtxCreate_v3@11040, cuCtxCreate_v4@12050,
        cuCtxDestroy_v2@4000, cuCtxDisablePeerAccess@2000, cuCtxEnablePeerAccess@2000,
        cuCtxGetApiVersion@2000, cuCtxGetCacheConfig@2000, cuCtxGetCurrent@2000, cuCtxGetDevice@2000,
        cuCtxGetDevice_v2@13000, cuCtxGetFlags@2000, cuCtxGetId@12000, cuCtxGetLimit@2000,
        cuCtxGetSharedMemConfig@2000, cuCtxGetStreamPriorityRange@2000, cuCtxPopCurrent_v2@4000,
        cuCtxPushCurrent_v2@4000, cuCtxResetPersistingL2Cache@2000, cuCtxSetCacheConfig@2000,
        cuCtxSetCurrent@2000, cuCtxSetFlags@12010, cuCtxSetLimit@2000, cuCtxSetSharedMemConfig@2000,
        cuCtxSynchronize@2000, cuCtxSynchronize_v2@13000, cuDestroyExternalMemory@2000,
        cuDestroyExternalSemaphore@2000, cuDeviceCanAccessPeer@2000, cuDeviceComputeCapability@2000,
        cuDeviceGet@2000, cuDeviceGetAttribute@2000, cuDeviceGetByPCIBusId@2000, cuDeviceGetCount@2000,
        cuDeviceGetDefaultMemPool@2000, cuDeviceGetExecAffinitySupport@2000,
        cuDeviceGetGraphMemAttribute@2000, cuDeviceGetMemPool@2000, cuDeviceGetName@2000,
        cuDeviceGetP2PAttribute@2000, cuDeviceGetPCIBusId@2000, cuDeviceGetProperties@2000,
        cuDeviceGetTexture1DLinearMaxWidth@2000, cuDeviceGetUuid@2000, cuDeviceGetUuid_v2@11040,
        cuDeviceGraphMemTrim@2000, cuDevicePrimaryCtxGetState@2000, cuDevicePrimaryCtxRelease_v2@11000,
        cuDevicePrimaryCtxReset_v2@11000, cuDevicePrimaryCtxRetain@2000, cuDevicePrimaryCtxSetFlags_v2@11000,
        cuDeviceSetGraphMemAttribute@2000, cuDeviceSetMemPool@2000, cuDeviceTotalMem_v2@3020,
        cuDriverGetVersion@2000, cuEventCreate@2000, cuEventDestroy_v2@4000, cuEventElapsedTime@2000,
        cuEventElapsedTime_v2@12080, cuEventQuery@2000, cuEventRecord@2000, cuEventRecordWithFlags@2000,
        cuEventRecordWithFlags_ptsz@7000, cuEventRecord_ptsz@7000, cuEventSynchronize@2000,
        cuExternalMemoryGetMappedBuffer@2000, cuExternalMemoryGetMappedMipmappedArray@2000,
        cuFuncGetAttribute@2000, cuFuncGetModule@2000, cuFuncGetName@12030, cuFuncGetParamInfo@12040,
        cuFuncIsLoaded@12040, cuFuncLoad@12040, cuFuncSetAttribute@2000, cuFuncSetBlockShape@2000,
        cuFuncSetCacheConfig@2000, cuFuncSetSharedMemConfig@2000, cuFuncSetSharedSize@2000,
        cuGetErrorName@2000, cuGetErrorString@2000, cuGetExportTable@2000, cuGetProcAddress@11030,
        cuGetProcAddress_v2@12000, cuGraphAddBatchMemOpNode@11070, cuGraphAddChildGraphNode@2000,
        cuGraphAddDependencies@2000, cuGraphAddDependencies_v2@12030, cuGraphAddEmptyNode@2000,
        cuGraphAddEventRecordNode@2000, cuGraphAddEventWaitNode@2000,
        cuGraphAddExternalSemaphoresSignalNode@2000, cuGraphAddExternalSemaphoresWaitNode@2000,
        cuGraphAddHostNode@2000, cuGraphAddKernelNode@2000, cuGraphAddKernelNode_v2@12000,
        cuGraphAddMemAllocNode@2000, cuGraphAddMemFreeNode@2000, cuGraphAddMemcpyNode@2000,
        cuGraphAddMemsetNode@2000, cuGraphAddNode@12020, cuGraphAddNode_v2@12030,
        cuGraphBatchMemOpNodeGetParams@11070, cuGraphBatchMemOpNodeSetParams@11070,
        cuGraphChildGraphNodeGetGraph@2000, cuGraphClone@2000, cuGraphConditionalHandleCreate@12030,
        cuGraphCreate@2000, cuGraphDebugDotPrint@2000, cuGraphDestroy@2000, cuGraphDestroyNode@2000,
        cuGraphEventRecordNodeGetEvent@2000, cuGraphEventRecordNodeSetEvent@2000,
        cuGraphEventWaitNodeGetEvent@2000, cuGraphEventWaitNodeSetEvent@2000,
        cuGraphExecBatchMemOpNodeSetParams@11070, cuGraphExecChildGraphNodeSetParams@2000,
        cuGraphExecDestroy@2000, cuGraphExecEventRecordNodeSetEvent@2000,
        cuGraphExecEventWaitNodeSetEvent@2000, cuGraphExecExternalSemaphoresSignalNodeSetParams@2000,
        cuGraphExecExternalSemaphoresWaitNodeSetParams@2000, cuGraphExecGetFlags@12000,
        cuGraphExecHostNodeSetParams@2000, cuGraphExecKernelNodeSetParams@2000,
        cuGraphExecKernelNodeSetParams_v2@12000, cuGraphExecMemcpyNodeSetParams@2000,
        cuGraphExecMemsetNodeSetParams@2000, cuGraphExecNodeSetParams@12020, cuGraphExecUpdate@2000,
        cuGraphExecUpdate_v2@12000, cuGraphExternalSemaphoresSignalNodeGetParams@2000,
        cuGraphExternalSemaphoresSignalNodeSetParams@2000, cuGraphExternalSemaphoresWaitNodeGetParams@2000,
        cuGraphExternalSemaphoresWaitNodeSetParams@2000, cuGraphGetEdges@2000, cuGraphGetEdges_v2@12030,
        cuGraphGetNodes@2000, cuGraphGetRootNodes@2000, cuGraphHostNodeGetParams@2000,
        cuGraphHostNodeSetParams@2000, cuGraphInstantiateWithFlags@2000, cuGraphInstantiateWithParams@12000,
        cuGraphInstantiate_v2@11000, cuGraphKernelNodeCopyAttributes@2000, cuGraphKernelNodeGetAttribute@2000,
        cuGraphKernelNodeGetParams@2000, cuGraphKernelNodeGetParams_v2@12000,
        cuGraphKernelNodeSetAttribute@2000, cuGraphKernelNodeSetParams@2000,
        cuGraphKernelNodeSetParams_v2@12000, cuGraphLaunch@2000, cuGraphLaunch_ptsz@7000,
        cuGraphMemAllocNodeGetParams@2000, cuGraphMemFreeNodeGetParams@2000, cuGraphMemcpyNodeGetParams@2000,
        cuGraphMemcpyNodeSetParams@2000, cuGraphMemsetNodeGetParams@2000, cuGraphMemsetNodeSetParams@2000,
        cuGraphNodeFindInClone@2000, cuGraphNodeGetDependencies@2000, cuGraphNodeGetDependencies_v2@12030,
        cuGraphNodeGetDependentNodes@2000, cuGraphNodeGetDependentNodes_v2@12030, cuGraphNodeGetEnabled@11060,
        cuGraphNodeGetType@2000, cuGraphNodeSetEnabled@11060, cuGraphNodeSetParams@12020,
        cuGraphReleaseUserObject@2000, cuGraphRemoveDependencies@2000, cuGraphRemoveDependencies_v2@12030,
        cuGraphRetainUserObject@2000, cuGraphUpload@2000, cuGraphUpload_ptsz@7000,
        cuImportExternalMemory@2000, cuImportExternalSemaphore@2000, cuInit@2000, cuIpcCloseMemHandle@2000,
        cuIpcGetEventHandle@2000, cuIpcGetMemHandle@2000, cuIpcOpenEventHandle@2000,
        cuIpcOpenMemHandle_v2@11000, cuKernelGetAttribute@12000, cuKernelGetFunction@12000,
        cuKernelGetLibrary@12050, cuKernelGetName@12030, cuKernelGetParamInfo@12040,
        cuKernelSetAttribute@12000, cuKernelSetCacheConfig@12000, cuLaunch@2000,
        cuLaunchCooperativeKernel@2000, cuLaunchCooperativeKernel_ptsz@7000, cuLaunchGrid@2000,
        cuLaunchGridAsync@2000, cuLaunchHostFunc@2000, cuLaunchHostFunc_ptsz@7000, cuLaunchKernel@2000,
        cuLaunchKernelEx@11060, cuLaunchKernelEx_ptsz@11060, cuLaunchKernel_ptsz@7000,
        cuLibraryEnumerateKernels@12040, cuLibraryGetGlobal@12000, cuLibraryGetKernel@12000,
        cuLibraryGetKernelCount@12040, cuLibraryGetModule@12000, cuLibraryLoadData@12000,
        cuLibraryLoadFromFile@12000, cuLibraryUnload@12000, cuLinkAddData_v2@6050, cuLinkAddFile_v2@6050,
        cuLinkComplete@2000, cuLinkCreate_v2@6050, cuLinkDestroy@2000, cuMemAddressFree@2000,
        cuMemAddressReserve@2000, cuMemAdvise@2000, cuMemAdvise_v2@12020, cuMemAllocAsync@2000,
        cuMemAllocAsync_ptsz@7000, cuMemAllocFromPoolAsync@2000, cuMemAllocFromPoolAsync_ptsz@7000,
        cuMemAllocHost_v2@3020, cuMemAllocManaged@2000, cuMemAllocPitch_v2@3020, cuMemAlloc_v2@3020,
        cuMemCreate@2000, cuMemExportToShareableHandle@2000, cuMemFreeAsync@2000, cuMemFreeAsync_ptsz@7000,
        cuMemFreeHost@2000, cuMemFree_v2@3020, cuMemGetAccess@2000, cuMemGetAddressRange_v2@3020,
        cuMemGetAllocationGranularity@2000, cuMemGetAllocationPropertiesFromHandle@2000, cuMemGetInfo_v2@3020,
        cuMemHostAlloc@2000, cuMemHostGetDevicePointer_v2@3020, cuMemHostGetFlags@2000,
        cuMemHostRegister_v2@6050, cuMemHostUnregister@2000, cuMemImportFromShareableHandle@2000,
        cuMemMap@2000, cuMemPoolCreate@2000, cuMemPoolDestroy@2000, cuMemPoolExportPointer@2000,
        cuMemPoolExportToShareableHandle@2000, cuMemPoolGetAccess@2000, cuMemPoolGetAttribute@2000,
        cuMemPoolImportFromShareableHandle@2000, cuMemPoolImportPointer@2000, cuMemPoolSetAccess@2000,
        cuMemPoolSetAttribute@2000, cuMemPoolTrimTo@2000, cuMemPrefetchAsync@2000,
        cuMemPrefetchAsync_ptsz@7000, cuMemPrefetchAsync_v2@12020, cuMemPrefetchAsync_v2_ptsz@12020,
        cuMemRelease@2000, cuMemRetainAllocationHandle@2000, cuMemSetAccess@2000, cuMemUnmap@2000,
        cuMemcpy@2000, cuMemcpy2DAsync_v2@3020, cuMemcpy2DAsync_v2_ptsz@7000, cuMemcpy2DUnaligned_v2@3020,
        cuMemcpy2DUnaligned_v2_ptds@7000, cuMemcpy2D_v2@3020, cuMemcpy2D_v2_ptds@7000,
        cuMemcpy3DAsync_v2@3020, cuMemcpy3DAsync_v2_ptsz@7000, cuMemcpy3DPeer@2000, cuMemcpy3DPeerAsync@2000,
        cuMemcpy3DPeerAsync_ptsz@7000, cuMemcpy3DPeer_ptds@7000, cuMemcpy3D_v2@3020, cuMemcpy3D_v2_ptds@7000,
        cuMemcpyAsync@2000, cuMemcpyAsync_ptsz@7000, cuMemcpyAtoA_v2@3020, cuMemcpyAtoA_v2_ptds@7000,
        cuMemcpyAtoD_v2@3020, cuMemcpyAtoD_v2_ptds@7000, cuMemcpyAtoHAsync_v2@3020,
        cuMemcpyAtoHAsync_v2_ptsz@7000, cuMemcpyAtoH_v2@3020, cuMemcpyAtoH_v2_ptds@7000,
        cuMemcpyBatchAsync@12080, cuMemcpyBatchAsync_ptsz@12080, cuMemcpyBatchAsync_v2@13000,
        cuMemcpyBatchAsync_v2_ptsz@13000, cuMemcpyDtoA_v2@3020, cuMemcpyDtoA_v2_ptds@7000,
        cuMemcpyDtoDAsync_v2@3020, cuMemcpyDtoDAsync_v2_ptsz@7000, cuMemcpyDtoD_v2@3020,
        cuMemcpyDtoD_v2_ptds@7000, cuMemcpyDtoHAsync_v2@3020, cuMemcpyDtoHAsync_v2_ptsz@7000,
        cuMemcpyDtoH_v2@3020, cuMemcpyDtoH_v2_ptds@7000, cuMemcpyHtoAAsync_v2@3020,
        cuMemcpyHtoAAsync_v2_ptsz@7000, cuMemcpyHtoA_v2@3020, cuMemcpyHtoA_v2_ptds@7000,
        cuMemcpyHtoDAsync_v2@3020, cuMemcpyHtoDAsync_v2_ptsz@7000, cuMemcpyHtoD_v2@3020,
        cuMemcpyHtoD_v2_ptds@7000, cuMemcpyPeer@2000, cuMemcpyPeerAsync@2000, cuMemcpyPeerAsync_ptsz@7000,
        cuMemcpyPeer_ptds@7000, cuMemcpy_ptds@7000, cuMemsetD16Async@2000, cuMemsetD16Async_ptsz@7000,
        cuMemsetD16_v2@3020, cuMemsetD16_v2_ptds@7000, cuMemsetD2D16Async@2000, cuMemsetD2D16Async_ptsz@7000,
        cuMemsetD2D16_v2@3020, cuMemsetD2D16_v2_ptds@7000, cuMemsetD2D32Async@2000,
        cuMemsetD2D32Async_ptsz@7000, cuMemsetD2D32_v2@3020, cuMemsetD2D32_v2_ptds@7000,
        cuMemsetD2D8Async@2000, cuMemsetD2D8Async_ptsz@7000, cuMemsetD2D8_v2@3020, cuMemsetD2D8_v2_ptds@7000,
        cuMemsetD32Async@2000, cuMemsetD32Async_ptsz@7000, cuMemsetD32_v2@3020, cuMemsetD32_v2_ptds@7000,
        cuMemsetD8Async@2000, cuMemsetD8Async_ptsz@7000, cuMemsetD8_v2@3020, cuMemsetD8_v2_ptds@7000,
        cuMipmappedArrayCreate@2000, cuMipmappedArrayDestroy@2000, cuMipmappedArrayGetLevel@2000,
        cuMipmappedArrayGetMemoryRequirements@11060, cuMipmappedArrayGetSparseProperties@2000,
        cuModuleEnumerateFunctions@12040, cuModuleGetFunction@2000, cuModuleGetFunctionCount@12040,
        cuModuleGetGlobal_v2@3020, cuModuleGetLoadingMode@11070, cuModuleLoad@2000, cuModuleLoadData@2000,
        cuModuleLoadDataEx@2000, cuModuleLoadFatBinary@2000, cuModuleUnload@2000,
        cuOccupancyAvailableDynamicSMemPerBlock@2000, cuOccupancyMaxActiveBlocksPerMultiprocessor@2000,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags@2000, cuOccupancyMaxPotentialBlockSize@2000,
        cuOccupancyMaxPotentialBlockSizeWithFlags@2000, cuOccupancyMaxPotentialClusterSize@11070,
        cuParamSetSize@2000, cuParamSetTexRef@2000, cuParamSetf@2000, cuParamSeti@2000, cuParamSetv@2000,
        cuPointerGetAttribute@2000, cuPointerGetAttributes@2000, cuPointerSetAttribute@2000,
        cuProfilerInitialize@2000, cuProfilerStart@2000, cuProfilerStop@2000,
        cuSignalExternalSemaphoresAsync@2000, cuStreamAddCallback@2000, cuStreamAddCallback_ptsz@7000,
        cuStreamAttachMemAsync@2000, cuStreamAttachMemAsync_ptsz@7000, cuStreamBatchMemOp@2000,
        cuStreamBatchMemOp_ptsz@7000, cuStreamBatchMemOp_v2@11070, cuStreamBatchMemOp_v2_ptsz@11070,
        cuStreamBeginCaptureToGraph@12030, cuStreamBeginCaptureToGraph_ptsz@12030,
        cuStreamBeginCapture_v2@10010, cuStreamBeginCapture_v2_ptsz@10010, cuStreamCopyAttributes@2000,
        cuStreamCopyAttributes_ptsz@7000, cuStreamCreate@2000, cuStreamCreateWithPriority@2000,
        cuStreamDestroy_v2@4000, cuStreamEndCapture@2000, cuStreamEndCapture_ptsz@7000,
        cuStreamGetAttribute@2000, cuStreamGetAttribute_ptsz@7000, cuStreamGetCaptureInfo@2000,
        cuStreamGetCaptureInfo_ptsz@7000, cuStreamGetCaptureInfo_v2@11030,
        cuStreamGetCaptureInfo_v2_ptsz@11030, cuStreamGetCaptureInfo_v3@12030,
        cuStreamGetCaptureInfo_v3_ptsz@12030, cuStreamGetCtx@2000, cuStreamGetCtx_ptsz@7000,
        cuStreamGetCtx_v2@12050, cuStreamGetCtx_v2_ptsz@12050, cuStreamGetDevice@12080,
        cuStreamGetDevice_ptsz@12080, cuStreamGetFlags@2000, cuStreamGetFlags_ptsz@7000, cuStreamGetId@12000,
        cuStreamGetId_ptsz@12000, cuStreamGetPriority@2000, cuStreamGetPriority_ptsz@7000,
        cuStreamIsCapturing@2000, cuStreamIsCapturing_ptsz@7000, cuStreamQuery@2000, cuStreamQuery_ptsz@7000,
        cuStreamSetAttribute@2000, cuStreamSetAttribute_ptsz@7000, cuStreamSynchronize@2000,
        cuStreamSynchronize_ptsz@7000, cuStreamUpdateCaptureDependencies@2000,
        cuStreamUpdateCaptureDependencies_ptsz@7000, cuStreamUpdateCaptureDependencies_v2@12030,
        cuStreamUpdateCaptureDependencies_v2_ptsz@12030, cuStreamWaitEvent@2000, cuStreamWaitEvent_ptsz@7000,
        cuStreamWaitValue32@2000, cuStreamWaitValue32_ptsz@7000, cuStreamWaitValue32_v2@11070,
        cuStreamWaitValue32_v2_ptsz@11070, cuStreamWaitValue64@2000, cuStreamWaitValue64_ptsz@7000,
        cuStreamWaitValue64_v2@11070, cuStreamWaitValue64_v2_ptsz@11070, cuStreamWriteValue32@2000,
        cuStreamWriteValue32_ptsz@7000, cuStreamWriteValue32_v2@11070, cuStreamWriteValue32_v2_ptsz@11070,
        cuStreamWriteValue64@2000, cuStreamWriteValue64_ptsz@7000, cuStreamWriteValue64_v2@11070,
        cuStreamWriteValue64_v2_ptsz@11070, cuSurfObjectCreate@2000, cuSurfObjectDestroy@2000,
        cuSurfObjectGetResourceDesc@2000, cuTensorMapEncodeIm2col@12000, cuTensorMapEncodeTiled@12000,
        cuTensorMapReplaceAddress@12000, cuTexObjectCreate@2000, cuTexObjectDestroy@2000,
        cuTexObjectGetResourceDesc@2000, cuTexObjectGetResourceViewDesc@2000, cuTexObjectGetTextureDesc@2000,
        cuThreadExchangeStreamCaptureMode@2000, cuUserObjectCreate@2000, cuUserObjectRelease@2000,
        cuUserObjectRetain@2000, cuWaitExternalSemaphoresAsync@2000,;
    unsupported:
        cuCoredumpGetAttribute@12010, cuCoredumpGetAttributeGlobal@12010, cuCoredumpSetAttribute@12010,
        cuCoredumpSetAttributeGlobal@12010, cuCtxAttach@2000, cuCtxDetach@2000, cuCtxFromGreenCtx@12040,
        cuCtxGetDevResource@12040, cuCtxGetExecAffinity@2000, cuCtxRecordEvent@12050, cuCtxWaitEvent@12050,
        cuDevResourceGenerateDesc@12040, cuDevSmResourceSplitByCount@12040, cuDeviceGetDevResource@12040,
        cuDeviceGetHostAtomicCapabilities@13000, cuDeviceGetLuid@2000, cuDeviceGetP2PAtomicCapabilities@13000,
        cuDeviceRegisterAsyncNotification@12040, cuDeviceUnregisterAsyncNotification@12040,
        cuFlushGPUDirectRDMAWrites@2000, cuGraphicsMapResources@2000,
        cuGraphicsResourceGetMappedMipmappedArray@2000, cuGraphicsResourceGetMappedPointer_v2@3020,
        cuGraphicsResourceSetMapFlags_v2@6050, cuGraphicsSubResourceGetMappedArray@2000,
        cuGraphicsUnmapResources@2000, cuGraphicsUnregisterResource@2000, cuGreenCtxCreate@12040,
        cuGreenCtxDestroy@12040, cuGreenCtxGetDevResource@12040, cuGreenCtxGetId@12090,
        cuGreenCtxRecordEvent@12040, cuGreenCtxStreamCreate@12050, cuGreenCtxWaitEvent@12040,
        cuLaunchCooperativeKernelMultiDevice@2000, cuLibraryGetManaged@12000,
        cuLibraryGetUnifiedFunction@12000, cuLogsCurrent@12090, cuLogsDumpToFile@12090,
        cuLogsDumpToMemory@12090, cuLogsRegisterCallback@12090, cuLogsUnregisterCallback@12090,
        cuMemBatchDecompressAsync@12060, cuMemDiscardAndPrefetchBatchAsync@13000,
        cuMemDiscardBatchAsync@13000, cuMemGetDefaultMemPool@13000, cuMemGetHandleForAddressRange@11070,
        cuMemGetMemPool@13000, cuMemMapArrayAsync@2000, cuMemPrefetchBatchAsync@13000,
        cuMemRangeGetAttribute@2000, cuMemRangeGetAttributes@2000, cuMemSetMemPool@13000,
        cuMemcpy3DBatchAsync@12080, cuMemcpy3DBatchAsync_v2@13000, cuModuleGetSurfRef@2000,
        cuModuleGetTexRef@2000, cuMulticastAddDevice@12010, cuMulticastBindAddr@12010,
        cuMulticastBindMem@12010, cuMulticastCreate@12010, cuMulticastGetGranularity@12010,
        cuMulticastUnbind@12010, cuOccupancyMaxActiveClusters@11070, cuStreamGetGreenCtx@12040,
        cuSurfRefGetArray@2000, cuSurfRefSetArray@2000, cuTensorMapEncodeIm2colWide@12080,
        cuTexRefCreate@2000, cuTexRefDestroy@2000, cuTexRefGetAddressMode@2000, cuTexRefGetAddress_v2@3020,
        cuTexRefGetArray@2000, cuTexRefGetBorderColor@2000, cuTexRefGetFilterMode@2000, cuTexRefGetFlags@2000,
        cuTexRefGetFormat@2000, cuTexRefGetMaxAnisotropy@2000, cuTexRefGetMipmapFilterMode@2000,
        cuTexRefGetMipmapLevelBias@2000, cuTexRefGetMipmapLevelClamp@2000, cuTexRefGetMipmappedArray@2000,
        cuTexRefSetAddress2D_v3@4010, cuTexRefSetAddressMode@2000, cuTexRefSetAddress_v2@3020,
        cuTexRefSetArray@2000, cuTexRefSetBorderColor@2000, cuTexRefSetFilterMode@2000, cuTexRefSetFlags@2000,
        cuTexRefSetFormat@2000, cuTexRefSetMaxAnisotropy@2000, cuTexRefSetMipmapFilterMode@2000,
        cuTexRefSetMipmapLevelBias@2000, cuTexRefSetMipmapLevelClamp@2000, cuTexRefSetMipmappedArray@2000,;
}
