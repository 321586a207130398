//! All 558 functions that the library exports: 463 are implemented, 95 answer that they are not supported.
//!
//! Written by `cargo xtask driver-table` from the bindings of cudarc and `cudaTypedefs.h`; do not edit. Each name has the CUDA version that has it first.

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
        cuArrayGetDescriptor_v2@3020, cuArrayGetMemoryRequirements@11060, cuArrayGetPlane@11020,
        cuArrayGetSparseProperties@11010, cuCtxCreate_v2@3020, cuCtxCreate_v3@11040, cuCtxCreate_v4@12050,
        cuCtxDestroy_v2@4000, cuCtxDisablePeerAccess@4000, cuCtxEnablePeerAccess@4000,
        cuCtxGetApiVersion@3020, cuCtxGetCacheConfig@3020, cuCtxGetCurrent@4000, cuCtxGetDevice@2000,
        cuCtxGetDevice_v2@13000, cuCtxGetFlags@7000, cuCtxGetId@12000, cuCtxGetLimit@3010,
        cuCtxGetSharedMemConfig@4020, cuCtxGetStreamPriorityRange@5050, cuCtxPopCurrent_v2@4000,
        cuCtxPushCurrent_v2@4000, cuCtxResetPersistingL2Cache@11000, cuCtxSetCacheConfig@3020,
        cuCtxSetCurrent@4000, cuCtxSetFlags@12010, cuCtxSetLimit@3010, cuCtxSetSharedMemConfig@4020,
        cuCtxSynchronize@2000, cuCtxSynchronize_v2@13000, cuDestroyExternalMemory@10000,
        cuDestroyExternalSemaphore@10000, cuDeviceCanAccessPeer@4000, cuDeviceComputeCapability@2000,
        cuDeviceGet@2000, cuDeviceGetAttribute@2000, cuDeviceGetByPCIBusId@4010, cuDeviceGetCount@2000,
        cuDeviceGetDefaultMemPool@11020, cuDeviceGetExecAffinitySupport@11040,
        cuDeviceGetGraphMemAttribute@11040, cuDeviceGetMemPool@11020, cuDeviceGetName@2000,
        cuDeviceGetP2PAttribute@8000, cuDeviceGetPCIBusId@4010, cuDeviceGetProperties@2000,
        cuDeviceGetTexture1DLinearMaxWidth@11010, cuDeviceGetUuid@9020, cuDeviceGetUuid_v2@11040,
        cuDeviceGraphMemTrim@11040, cuDevicePrimaryCtxGetState@7000, cuDevicePrimaryCtxRelease_v2@11000,
        cuDevicePrimaryCtxReset_v2@11000, cuDevicePrimaryCtxRetain@7000, cuDevicePrimaryCtxSetFlags_v2@11000,
        cuDeviceSetGraphMemAttribute@11040, cuDeviceSetMemPool@11020, cuDeviceTotalMem_v2@3020,
        cuDriverGetVersion@2020, cuEventCreate@2000, cuEventDestroy_v2@4000, cuEventElapsedTime@2000,
        cuEventElapsedTime_v2@12080, cuEventQuery@2000, cuEventRecord@2000, cuEventRecordWithFlags@11010,
        cuEventRecordWithFlags_ptsz@11010, cuEventRecord_ptsz@7000, cuEventSynchronize@2000,
        cuExternalMemoryGetMappedBuffer@10000, cuExternalMemoryGetMappedMipmappedArray@10000,
        cuFuncGetAttribute@2020, cuFuncGetModule@11000, cuFuncGetName@12030, cuFuncGetParamInfo@12040,
        cuFuncIsLoaded@12040, cuFuncLoad@12040, cuFuncSetAttribute@9000, cuFuncSetBlockShape@2000,
        cuFuncSetCacheConfig@3000, cuFuncSetSharedMemConfig@4020, cuFuncSetSharedSize@2000,
        cuGetErrorName@6000, cuGetErrorString@6000, cuGetExportTable@3000, cuGetProcAddress@11030,
        cuGetProcAddress_v2@12000, cuGraphAddBatchMemOpNode@11070, cuGraphAddChildGraphNode@10000,
        cuGraphAddDependencies@10000, cuGraphAddDependencies_v2@12030, cuGraphAddEmptyNode@10000,
        cuGraphAddEventRecordNode@11010, cuGraphAddEventWaitNode@11010,
        cuGraphAddExternalSemaphoresSignalNode@11020, cuGraphAddExternalSemaphoresWaitNode@11020,
        cuGraphAddHostNode@10000, cuGraphAddKernelNode@10000, cuGraphAddKernelNode_v2@12000,
        cuGraphAddMemAllocNode@11040, cuGraphAddMemFreeNode@11040, cuGraphAddMemcpyNode@10000,
        cuGraphAddMemsetNode@10000, cuGraphAddNode@12020, cuGraphAddNode_v2@12030,
        cuGraphBatchMemOpNodeGetParams@11070, cuGraphBatchMemOpNodeSetParams@11070,
        cuGraphChildGraphNodeGetGraph@10000, cuGraphClone@10000, cuGraphConditionalHandleCreate@12030,
        cuGraphCreate@10000, cuGraphDebugDotPrint@11030, cuGraphDestroy@10000, cuGraphDestroyNode@10000,
        cuGraphEventRecordNodeGetEvent@11010, cuGraphEventRecordNodeSetEvent@11010,
        cuGraphEventWaitNodeGetEvent@11010, cuGraphEventWaitNodeSetEvent@11010,
        cuGraphExecBatchMemOpNodeSetParams@11070, cuGraphExecChildGraphNodeSetParams@11010,
        cuGraphExecDestroy@10000, cuGraphExecEventRecordNodeSetEvent@11010,
        cuGraphExecEventWaitNodeSetEvent@11010, cuGraphExecExternalSemaphoresSignalNodeSetParams@11020,
        cuGraphExecExternalSemaphoresWaitNodeSetParams@11020, cuGraphExecGetFlags@12000,
        cuGraphExecHostNodeSetParams@10020, cuGraphExecKernelNodeSetParams@10010,
        cuGraphExecKernelNodeSetParams_v2@12000, cuGraphExecMemcpyNodeSetParams@10020,
        cuGraphExecMemsetNodeSetParams@10020, cuGraphExecNodeSetParams@12020, cuGraphExecUpdate@10020,
        cuGraphExecUpdate_v2@12000, cuGraphExternalSemaphoresSignalNodeGetParams@11020,
        cuGraphExternalSemaphoresSignalNodeSetParams@11020, cuGraphExternalSemaphoresWaitNodeGetParams@11020,
        cuGraphExternalSemaphoresWaitNodeSetParams@11020, cuGraphGetEdges@10000, cuGraphGetEdges_v2@12030,
        cuGraphGetNodes@10000, cuGraphGetRootNodes@10000, cuGraphHostNodeGetParams@10000,
        cuGraphHostNodeSetParams@10000, cuGraphInstantiateWithFlags@11040, cuGraphInstantiateWithParams@12000,
        cuGraphInstantiate_v2@11000, cuGraphKernelNodeCopyAttributes@11000,
        cuGraphKernelNodeGetAttribute@11000, cuGraphKernelNodeGetParams@10000,
        cuGraphKernelNodeGetParams_v2@12000, cuGraphKernelNodeSetAttribute@11000,
        cuGraphKernelNodeSetParams@10000, cuGraphKernelNodeSetParams_v2@12000, cuGraphLaunch@10000,
        cuGraphLaunch_ptsz@10000, cuGraphMemAllocNodeGetParams@11040, cuGraphMemFreeNodeGetParams@11040,
        cuGraphMemcpyNodeGetParams@10000, cuGraphMemcpyNodeSetParams@10000, cuGraphMemsetNodeGetParams@10000,
        cuGraphMemsetNodeSetParams@10000, cuGraphNodeFindInClone@10000, cuGraphNodeGetDependencies@10000,
        cuGraphNodeGetDependencies_v2@12030, cuGraphNodeGetDependentNodes@10000,
        cuGraphNodeGetDependentNodes_v2@12030, cuGraphNodeGetEnabled@11060, cuGraphNodeGetType@10000,
        cuGraphNodeSetEnabled@11060, cuGraphNodeSetParams@12020, cuGraphReleaseUserObject@11030,
        cuGraphRemoveDependencies@10000, cuGraphRemoveDependencies_v2@12030, cuGraphRetainUserObject@11030,
        cuGraphUpload@11010, cuGraphUpload_ptsz@11010, cuImportExternalMemory@10000,
        cuImportExternalSemaphore@10000, cuInit@2000, cuIpcCloseMemHandle@4010, cuIpcGetEventHandle@4010,
        cuIpcGetMemHandle@4010, cuIpcOpenEventHandle@4010, cuIpcOpenMemHandle_v2@11000,
        cuKernelGetAttribute@12000, cuKernelGetFunction@12000, cuKernelGetLibrary@12050,
        cuKernelGetName@12030, cuKernelGetParamInfo@12040, cuKernelSetAttribute@12000,
        cuKernelSetCacheConfig@12000, cuLaunch@2000, cuLaunchCooperativeKernel@9000,
        cuLaunchCooperativeKernel_ptsz@9000, cuLaunchGrid@2000, cuLaunchGridAsync@2000,
        cuLaunchHostFunc@10000, cuLaunchHostFunc_ptsz@10000, cuLaunchKernel@4000, cuLaunchKernelEx@11060,
        cuLaunchKernelEx_ptsz@11060, cuLaunchKernel_ptsz@7000, cuLibraryEnumerateKernels@12040,
        cuLibraryGetGlobal@12000, cuLibraryGetKernel@12000, cuLibraryGetKernelCount@12040,
        cuLibraryGetModule@12000, cuLibraryLoadData@12000, cuLibraryLoadFromFile@12000, cuLibraryUnload@12000,
        cuLinkAddData_v2@6050, cuLinkAddFile_v2@6050, cuLinkComplete@5050, cuLinkCreate_v2@6050,
        cuLinkDestroy@5050, cuMemAddressFree@10020, cuMemAddressReserve@10020, cuMemAdvise@8000,
        cuMemAdvise_v2@12020, cuMemAllocAsync@11020, cuMemAllocAsync_ptsz@11020,
        cuMemAllocFromPoolAsync@11020, cuMemAllocFromPoolAsync_ptsz@11020, cuMemAllocHost_v2@3020,
        cuMemAllocManaged@6000, cuMemAllocPitch_v2@3020, cuMemAlloc_v2@3020, cuMemCreate@10020,
        cuMemExportToShareableHandle@10020, cuMemFreeAsync@11020, cuMemFreeAsync_ptsz@11020,
        cuMemFreeHost@2000, cuMemFree_v2@3020, cuMemGetAccess@10020, cuMemGetAddressRange_v2@3020,
        cuMemGetAllocationGranularity@10020, cuMemGetAllocationPropertiesFromHandle@10020,
        cuMemGetInfo_v2@3020, cuMemHostAlloc@2020, cuMemHostGetDevicePointer_v2@3020, cuMemHostGetFlags@2030,
        cuMemHostRegister_v2@6050, cuMemHostUnregister@4000, cuMemImportFromShareableHandle@10020,
        cuMemMap@10020, cuMemPoolCreate@11020, cuMemPoolDestroy@11020, cuMemPoolExportPointer@11020,
        cuMemPoolExportToShareableHandle@11020, cuMemPoolGetAccess@11020, cuMemPoolGetAttribute@11020,
        cuMemPoolImportFromShareableHandle@11020, cuMemPoolImportPointer@11020, cuMemPoolSetAccess@11020,
        cuMemPoolSetAttribute@11020, cuMemPoolTrimTo@11020, cuMemPrefetchAsync@8000,
        cuMemPrefetchAsync_ptsz@8000, cuMemPrefetchAsync_v2@12020, cuMemPrefetchAsync_v2_ptsz@12020,
        cuMemRelease@10020, cuMemRetainAllocationHandle@11000, cuMemSetAccess@10020, cuMemUnmap@10020,
        cuMemcpy@4000, cuMemcpy2DAsync_v2@3020, cuMemcpy2DAsync_v2_ptsz@7000, cuMemcpy2DUnaligned_v2@3020,
        cuMemcpy2DUnaligned_v2_ptds@7000, cuMemcpy2D_v2@3020, cuMemcpy2D_v2_ptds@7000,
        cuMemcpy3DAsync_v2@3020, cuMemcpy3DAsync_v2_ptsz@7000, cuMemcpy3DPeer@4000, cuMemcpy3DPeerAsync@4000,
        cuMemcpy3DPeerAsync_ptsz@7000, cuMemcpy3DPeer_ptds@7000, cuMemcpy3D_v2@3020, cuMemcpy3D_v2_ptds@7000,
        cuMemcpyAsync@4000, cuMemcpyAsync_ptsz@7000, cuMemcpyAtoA_v2@3020, cuMemcpyAtoA_v2_ptds@7000,
        cuMemcpyAtoD_v2@3020, cuMemcpyAtoD_v2_ptds@7000, cuMemcpyAtoHAsync_v2@3020,
        cuMemcpyAtoHAsync_v2_ptsz@7000, cuMemcpyAtoH_v2@3020, cuMemcpyAtoH_v2_ptds@7000,
        cuMemcpyBatchAsync@12080, cuMemcpyBatchAsync_ptsz@12080, cuMemcpyBatchAsync_v2@13000,
        cuMemcpyBatchAsync_v2_ptsz@13000, cuMemcpyDtoA_v2@3020, cuMemcpyDtoA_v2_ptds@7000,
        cuMemcpyDtoDAsync_v2@3020, cuMemcpyDtoDAsync_v2_ptsz@7000, cuMemcpyDtoD_v2@3020,
        cuMemcpyDtoD_v2_ptds@7000, cuMemcpyDtoHAsync_v2@3020, cuMemcpyDtoHAsync_v2_ptsz@7000,
        cuMemcpyDtoH_v2@3020, cuMemcpyDtoH_v2_ptds@7000, cuMemcpyHtoAAsync_v2@3020,
        cuMemcpyHtoAAsync_v2_ptsz@7000, cuMemcpyHtoA_v2@3020, cuMemcpyHtoA_v2_ptds@7000,
        cuMemcpyHtoDAsync_v2@3020, cuMemcpyHtoDAsync_v2_ptsz@7000, cuMemcpyHtoD_v2@3020,
        cuMemcpyHtoD_v2_ptds@7000, cuMemcpyPeer@4000, cuMemcpyPeerAsync@4000, cuMemcpyPeerAsync_ptsz@7000,
        cuMemcpyPeer_ptds@7000, cuMemcpy_ptds@7000, cuMemsetD16Async@3020, cuMemsetD16Async_ptsz@7000,
        cuMemsetD16_v2@3020, cuMemsetD16_v2_ptds@7000, cuMemsetD2D16Async@3020, cuMemsetD2D16Async_ptsz@7000,
        cuMemsetD2D16_v2@3020, cuMemsetD2D16_v2_ptds@7000, cuMemsetD2D32Async@3020,
        cuMemsetD2D32Async_ptsz@7000, cuMemsetD2D32_v2@3020, cuMemsetD2D32_v2_ptds@7000,
        cuMemsetD2D8Async@3020, cuMemsetD2D8Async_ptsz@7000, cuMemsetD2D8_v2@3020, cuMemsetD2D8_v2_ptds@7000,
        cuMemsetD32Async@3020, cuMemsetD32Async_ptsz@7000, cuMemsetD32_v2@3020, cuMemsetD32_v2_ptds@7000,
        cuMemsetD8Async@3020, cuMemsetD8Async_ptsz@7000, cuMemsetD8_v2@3020, cuMemsetD8_v2_ptds@7000,
        cuMipmappedArrayCreate@5000, cuMipmappedArrayDestroy@5000, cuMipmappedArrayGetLevel@5000,
        cuMipmappedArrayGetMemoryRequirements@11060, cuMipmappedArrayGetSparseProperties@11010,
        cuModuleEnumerateFunctions@12040, cuModuleGetFunction@2000, cuModuleGetFunctionCount@12040,
        cuModuleGetGlobal_v2@3020, cuModuleGetLoadingMode@11070, cuModuleLoad@2000, cuModuleLoadData@2000,
        cuModuleLoadDataEx@2010, cuModuleLoadFatBinary@2000, cuModuleUnload@2000,
        cuOccupancyAvailableDynamicSMemPerBlock@10020, cuOccupancyMaxActiveBlocksPerMultiprocessor@6050,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags@7000, cuOccupancyMaxPotentialBlockSize@6050,
        cuOccupancyMaxPotentialBlockSizeWithFlags@7000, cuOccupancyMaxPotentialClusterSize@11070,
        cuParamSetSize@2000, cuParamSetTexRef@2000, cuParamSetf@2000, cuParamSeti@2000, cuParamSetv@2000,
        cuPointerGetAttribute@4000, cuPointerGetAttributes@7000, cuPointerSetAttribute@6000,
        cuProfilerInitialize@4000, cuProfilerStart@4000, cuProfilerStop@4000,
        cuSignalExternalSemaphoresAsync@10000, cuStreamAddCallback@5000, cuStreamAddCallback_ptsz@7000,
        cuStreamAttachMemAsync@6000, cuStreamAttachMemAsync_ptsz@7000, cuStreamBatchMemOp@8000,
        cuStreamBatchMemOp_ptsz@8000, cuStreamBatchMemOp_v2@11070, cuStreamBatchMemOp_v2_ptsz@11070,
        cuStreamBeginCaptureToGraph@12030, cuStreamBeginCaptureToGraph_ptsz@12030,
        cuStreamBeginCapture_v2@10010, cuStreamBeginCapture_v2_ptsz@10010, cuStreamCopyAttributes@11000,
        cuStreamCopyAttributes_ptsz@11000, cuStreamCreate@2000, cuStreamCreateWithPriority@5050,
        cuStreamDestroy_v2@4000, cuStreamEndCapture@10000, cuStreamEndCapture_ptsz@10000,
        cuStreamGetAttribute@11000, cuStreamGetAttribute_ptsz@11000, cuStreamGetCaptureInfo@10010,
        cuStreamGetCaptureInfo_ptsz@10010, cuStreamGetCaptureInfo_v2@11030,
        cuStreamGetCaptureInfo_v2_ptsz@11030, cuStreamGetCaptureInfo_v3@12030,
        cuStreamGetCaptureInfo_v3_ptsz@12030, cuStreamGetCtx@9020, cuStreamGetCtx_ptsz@9020,
        cuStreamGetCtx_v2@12050, cuStreamGetCtx_v2_ptsz@12050, cuStreamGetDevice@12080,
        cuStreamGetDevice_ptsz@12080, cuStreamGetFlags@5050, cuStreamGetFlags_ptsz@7000, cuStreamGetId@12000,
        cuStreamGetId_ptsz@12000, cuStreamGetPriority@5050, cuStreamGetPriority_ptsz@7000,
        cuStreamIsCapturing@10000, cuStreamIsCapturing_ptsz@10000, cuStreamQuery@2000,
        cuStreamQuery_ptsz@7000, cuStreamSetAttribute@11000, cuStreamSetAttribute_ptsz@11000,
        cuStreamSynchronize@2000, cuStreamSynchronize_ptsz@7000, cuStreamUpdateCaptureDependencies@11030,
        cuStreamUpdateCaptureDependencies_ptsz@11030, cuStreamUpdateCaptureDependencies_v2@12030,
        cuStreamUpdateCaptureDependencies_v2_ptsz@12030, cuStreamWaitEvent@3020, cuStreamWaitEvent_ptsz@7000,
        cuStreamWaitValue32@8000, cuStreamWaitValue32_ptsz@8000, cuStreamWaitValue32_v2@11070,
        cuStreamWaitValue32_v2_ptsz@11070, cuStreamWaitValue64@9000, cuStreamWaitValue64_ptsz@9000,
        cuStreamWaitValue64_v2@11070, cuStreamWaitValue64_v2_ptsz@11070, cuStreamWriteValue32@8000,
        cuStreamWriteValue32_ptsz@8000, cuStreamWriteValue32_v2@11070, cuStreamWriteValue32_v2_ptsz@11070,
        cuStreamWriteValue64@9000, cuStreamWriteValue64_ptsz@9000, cuStreamWriteValue64_v2@11070,
        cuStreamWriteValue64_v2_ptsz@11070, cuSurfObjectCreate@5000, cuSurfObjectDestroy@5000,
        cuSurfObjectGetResourceDesc@5000, cuTensorMapEncodeIm2col@12000, cuTensorMapEncodeTiled@12000,
        cuTensorMapReplaceAddress@12000, cuTexObjectCreate@5000, cuTexObjectDestroy@5000,
        cuTexObjectGetResourceDesc@5000, cuTexObjectGetResourceViewDesc@5000, cuTexObjectGetTextureDesc@5000,
        cuThreadExchangeStreamCaptureMode@10010, cuUserObjectCreate@11030, cuUserObjectRelease@11030,
        cuUserObjectRetain@11030, cuWaitExternalSemaphoresAsync@10000,;
    unsupported:
        cuCoredumpGetAttribute@12010, cuCoredumpGetAttributeGlobal@12010, cuCoredumpSetAttribute@12010,
        cuCoredumpSetAttributeGlobal@12010, cuCtxAttach@2000, cuCtxDetach@2000, cuCtxFromGreenCtx@12040,
        cuCtxGetDevResource@12040, cuCtxGetExecAffinity@11040, cuCtxRecordEvent@12050, cuCtxWaitEvent@12050,
        cuDevResourceGenerateDesc@12040, cuDevSmResourceSplitByCount@12040, cuDeviceGetDevResource@12040,
        cuDeviceGetHostAtomicCapabilities@13000, cuDeviceGetLuid@10000,
        cuDeviceGetP2PAtomicCapabilities@13000, cuDeviceRegisterAsyncNotification@12040,
        cuDeviceUnregisterAsyncNotification@12040, cuFlushGPUDirectRDMAWrites@11030,
        cuGraphicsMapResources@3000, cuGraphicsResourceGetMappedMipmappedArray@5000,
        cuGraphicsResourceGetMappedPointer_v2@3020, cuGraphicsResourceSetMapFlags_v2@6050,
        cuGraphicsSubResourceGetMappedArray@3000, cuGraphicsUnmapResources@3000,
        cuGraphicsUnregisterResource@3000, cuGreenCtxCreate@12040, cuGreenCtxDestroy@12040,
        cuGreenCtxGetDevResource@12040, cuGreenCtxGetId@12090, cuGreenCtxRecordEvent@12040,
        cuGreenCtxStreamCreate@12050, cuGreenCtxWaitEvent@12040, cuLaunchCooperativeKernelMultiDevice@9000,
        cuLibraryGetManaged@12000, cuLibraryGetUnifiedFunction@12000, cuLogsCurrent@12090,
        cuLogsDumpToFile@12090, cuLogsDumpToMemory@12090, cuLogsRegisterCallback@12090,
        cuLogsUnregisterCallback@12090, cuMemBatchDecompressAsync@12060,
        cuMemDiscardAndPrefetchBatchAsync@13000, cuMemDiscardBatchAsync@13000, cuMemGetDefaultMemPool@13000,
        cuMemGetHandleForAddressRange@11070, cuMemGetMemPool@13000, cuMemMapArrayAsync@11010,
        cuMemPrefetchBatchAsync@13000, cuMemRangeGetAttribute@8000, cuMemRangeGetAttributes@8000,
        cuMemSetMemPool@13000, cuMemcpy3DBatchAsync@12080, cuMemcpy3DBatchAsync_v2@13000,
        cuModuleGetSurfRef@3000, cuModuleGetTexRef@2000, cuMulticastAddDevice@12010,
        cuMulticastBindAddr@12010, cuMulticastBindMem@12010, cuMulticastCreate@12010,
        cuMulticastGetGranularity@12010, cuMulticastUnbind@12010, cuOccupancyMaxActiveClusters@11070,
        cuStreamGetGreenCtx@12040, cuSurfRefGetArray@3000, cuSurfRefSetArray@3000,
        cuTensorMapEncodeIm2colWide@12080, cuTexRefCreate@2000, cuTexRefDestroy@2000,
        cuTexRefGetAddressMode@2000, cuTexRefGetAddress_v2@3020, cuTexRefGetArray@2000,
        cuTexRefGetBorderColor@8000, cuTexRefGetFilterMode@2000, cuTexRefGetFlags@2000,
        cuTexRefGetFormat@2000, cuTexRefGetMaxAnisotropy@5000, cuTexRefGetMipmapFilterMode@5000,
        cuTexRefGetMipmapLevelBias@5000, cuTexRefGetMipmapLevelClamp@5000, cuTexRefGetMipmappedArray@5000,
        cuTexRefSetAddress2D_v3@4010, cuTexRefSetAddressMode@2000, cuTexRefSetAddress_v2@3020,
        cuTexRefSetArray@2000, cuTexRefSetBorderColor@8000, cuTexRefSetFilterMode@2000, cuTexRefSetFlags@2000,
        cuTexRefSetFormat@2000, cuTexRefSetMaxAnisotropy@5000, cuTexRefSetMipmapFilterMode@5000,
        cuTexRefSetMipmapLevelBias@5000, cuTexRefSetMipmapLevelClamp@5000, cuTexRefSetMipmappedArray@5000,;
}
