/* The functions of the CUDA driver API that these programs call, and a check that says where it failed. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef unsigned long long address;
typedef void *handle;

int cuInit(unsigned flags);
int cuGetErrorString(int code, const char **text);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetUuid_v2(char *uuid, int device);
int cuDeviceGetPCIBusId(char *id, int room, int device);
int cuDeviceGetByPCIBusId(int *device, const char *id);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceComputeCapability(int *major, int *minor, int device);
int cuDeviceGetDefaultMemPool(handle *pool, int device);
int cuDeviceGetMemPool(handle *pool, int device);
int cuDeviceSetMemPool(int device, handle pool);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxGetDevice(int *device);
int cuCtxGetFlags(unsigned *flags);
int cuCtxGetLimit(size_t *value, int limit);
int cuCtxSetLimit(int limit, size_t value);
int cuCtxGetCacheConfig(int *config);
int cuCtxSetCacheConfig(int config);
int cuCtxGetStreamPriorityRange(int *least, int *greatest);
int cuCtxResetPersistingL2Cache(void);
int cuCtxGetApiVersion(handle context, unsigned *version);
int cuCtxGetId(handle context, unsigned long long *id);
int cuMemHostAlloc(void **out, size_t bytes, unsigned flags);
int cuMemHostGetFlags(unsigned *flags, void *start);
int cuMemHostGetDevicePointer_v2(address *out, void *start, unsigned flags);
int cuMemGetAddressRange_v2(address *start, size_t *bytes, address pointer);
int cuMemPoolGetAttribute(handle pool, int attribute, void *value);
int cuMemPoolSetAttribute(handle pool, int attribute, void *value);
int cuMemPoolTrimTo(handle pool, size_t keep);
int cuMemPoolDestroy(handle pool);
int cuMemAllocFromPoolAsync(address *out, size_t bytes, handle pool, handle stream);
int cuMemcpy(address to, address from, size_t bytes);
int cuMemcpyAsync(address to, address from, size_t bytes, handle stream);
int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, handle stream);
int cuMemsetD16_v2(address to, unsigned short value, size_t count);
int cuMemsetD8Async(address to, unsigned char value, size_t count, handle stream);
int cuMemsetD16Async(address to, unsigned short value, size_t count, handle stream);
int cuMemsetD2D8_v2(address to, size_t pitch, unsigned char value, size_t width, size_t height);
int cuMemsetD2D16_v2(address to, size_t pitch, unsigned short value, size_t width, size_t height);
int cuMemsetD2D32_v2(address to, size_t pitch, unsigned value, size_t width, size_t height);
int cuMemsetD2D8Async(address to, size_t pitch, unsigned char value, size_t width, size_t height, handle stream);
int cuStreamCreateWithPriority(handle *stream, unsigned flags, int priority);
int cuStreamGetFlags(handle stream, unsigned *flags);
int cuStreamGetPriority(handle stream, int *priority);
int cuStreamGetCtx(handle stream, handle *context);
int cuStreamGetId(handle stream, unsigned long long *id);
int cuStreamAddCallback(handle stream, void (*function)(handle, int, void *), void *data, unsigned flags);
int cuEventRecordWithFlags(handle event, handle stream, unsigned flags);
int cuModuleLoad(handle *module, const char *file);
int cuModuleGetFunctionCount(unsigned *count, handle module);
int cuModuleEnumerateFunctions(handle *functions, unsigned room, handle module);
int cuModuleGetLoadingMode(int *mode);
int cuFuncSetAttribute(handle function, int attribute, int value);
int cuFuncSetCacheConfig(handle function, int config);
int cuFuncGetModule(handle *module, handle function);
int cuFuncGetName(const char **name, handle function);
int cuFuncGetParamInfo(handle function, size_t index, size_t *offset, size_t *bytes);
int cuLinkAddFile_v2(handle link, int kind, const char *file, unsigned count, void *keys, void *values);
int cuLibraryLoadData(handle *library, const void *code, void *jit, void *jit_values, unsigned jit_count, void *options,
                      void **option_values, unsigned option_count);
int cuLibraryLoadFromFile(handle *library, const char *file, void *jit, void *jit_values, unsigned jit_count, void *options,
                          void **option_values, unsigned option_count);
int cuLibraryUnload(handle library);
int cuLibraryGetKernel(handle *kernel, handle library, const char *name);
int cuLibraryGetKernelCount(unsigned *count, handle library);
int cuLibraryEnumerateKernels(handle *kernels, unsigned room, handle library);
int cuLibraryGetModule(handle *module, handle library);
int cuLibraryGetGlobal(address *start, size_t *bytes, handle library, const char *name);
int cuKernelGetFunction(handle *function, handle kernel);
int cuKernelGetLibrary(handle *library, handle kernel);
int cuKernelGetName(const char **name, handle kernel);
int cuKernelGetAttribute(int *value, int attribute, handle kernel, int device);
int cuKernelSetAttribute(int attribute, int value, handle kernel, int device);
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, handle function, size_t (*shared)(int), size_t bytes, int limit);
int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, handle function, int blocks, int block);
int cuLaunchCooperativeKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, handle stream, void **parameters);
int cuLaunchKernelEx(const void *config, handle function, void **parameters, void **extra);
int cuProfilerStop(void);
int cuStreamBeginCapture_v2(handle stream, int mode);
int cuStreamEndCapture(handle stream, handle *graph);
int cuStreamIsCapturing(handle stream, int *status);
int cuGraphCreate(handle *graph, unsigned flags);
int cuGraphClone(handle *clone, handle graph);
int cuGraphDestroy(handle graph);
int cuGraphGetNodes(handle graph, handle *nodes, size_t *count);
int cuGraphGetRootNodes(handle graph, handle *nodes, size_t *count);
int cuGraphInstantiateWithFlags(handle *exec, handle graph, unsigned long long flags);
int cuGraphExecGetFlags(handle exec, unsigned long long *flags);
int cuGraphUpload(handle exec, handle stream);
int cuGraphLaunch(handle exec, handle stream);
int cuGraphExecDestroy(handle exec);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int code, const char **name);
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status);
int cuGetExportTable(const void **table, const void *id);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int room, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(handle *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxCreate_v2(handle *context, unsigned flags, int device);
int cuCtxDestroy_v2(handle context);
int cuCtxSetCurrent(handle context);
int cuCtxGetCurrent(handle *context);
int cuCtxPushCurrent_v2(handle context);
int cuCtxPopCurrent_v2(handle *context);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(address *out, size_t bytes);
int cuMemAllocPitch_v2(address *out, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemAllocManaged(address *out, size_t bytes, unsigned flags);
int cuMemAllocHost_v2(void **out, size_t bytes);
int cuMemHostRegister_v2(void *start, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *start);
int cuMemFreeHost(void *start);
int cuMemFree_v2(address start);
int cuMemAllocAsync(address *out, size_t bytes, handle stream);
int cuMemFreeAsync(address start, handle stream);
int cuMemGetInfo_v2(size_t *free, size_t *total);
int cuPointerGetAttribute(void *out, int attribute, address pointer);
int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes);
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, handle stream);
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, handle stream);
int cuMemcpyDtoD_v2(address to, address from, size_t bytes);
int cuMemsetD8_v2(address to, unsigned char value, size_t count);
int cuMemsetD32_v2(address to, unsigned value, size_t count);
int cuMemsetD32Async(address to, unsigned value, size_t count, handle stream);
int cuStreamCreate(handle *stream, unsigned flags);
int cuStreamDestroy_v2(handle stream);
int cuStreamSynchronize(handle stream);
int cuStreamQuery(handle stream);
int cuStreamWaitEvent(handle stream, handle event, unsigned flags);
int cuLaunchHostFunc(handle stream, void (*function)(void *), void *data);
int cuEventCreate(handle *event, unsigned flags);
int cuEventDestroy_v2(handle event);
int cuEventRecord(handle event, handle stream);
int cuEventQuery(handle event);
int cuEventSynchronize(handle event);
int cuEventElapsedTime(float *milliseconds, handle from, handle to);
int cuModuleLoadData(handle *module, const void *code);
int cuModuleUnload(handle module);
int cuModuleGetFunction(handle *function, handle module, const char *name);
int cuModuleGetGlobal_v2(address *start, size_t *bytes, handle module, const char *name);
int cuFuncGetAttribute(int *value, int attribute, handle function);
int cuLinkCreate_v2(unsigned count, void *keys, void *values, handle *link);
int cuLinkAddData_v2(handle link, int kind, void *data, size_t bytes, const char *name, unsigned count, void *keys, void *values);
int cuLinkComplete(handle link, void **code, size_t *bytes);
int cuLinkDestroy(handle link);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, handle function, int block, size_t shared);
int cuLaunchKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, handle stream, void **parameters, void **extra);

struct copy2d {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    address from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    address to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};
int cuMemcpy2D_v2(const struct copy2d *copy);
int cuMemcpy2DUnaligned_v2(const struct copy2d *copy);
int cuMemcpy2DAsync_v2(const struct copy2d *copy, handle stream);

#define WANT(code, call)                                                                                          \
    do {                                                                                                          \
        int answered_ = (call);                                                                                   \
        if (answered_ != (code)) {                                                                                \
            fprintf(stderr, "%s:%d: %s answered %d instead of %d\n", __FILE__, __LINE__, #call, answered_, code); \
            exit(1);                                                                                              \
        }                                                                                                         \
    } while (0)
#define OK(call) WANT(0, call)
#define TRUE(condition)                                                               \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

/* Adds 1 to n words; `bias` is a variable that is added, too. */
static const char *ADD_ONE =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 bias = 0;\n"
    ".visible .entry add_one(.param .u64 p, .param .u32 n)\n{\n"
    ".reg .pred %q;\n.reg .b32 %r<9>;\n.reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %q, %r5, %r1;\n@%q bra done;\n"
    "cvta.to.global.u64 %d2, %d1;\nmul.wide.u32 %d3, %r5, 4;\nadd.s64 %d4, %d2, %d3;\n"
    "ld.global.u32 %r6, [%d4];\nld.global.u32 %r7, [bias];\n"
    "add.s32 %r8, %r6, %r7;\nadd.s32 %r8, %r8, 1;\nst.global.u32 [%d4], %r8;\n"
    "done:\nret;\n}\n";

static handle begin(void) {
    handle context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static handle add_one(void) {
    handle module, function;
    OK(cuModuleLoadData(&module, ADD_ONE));
    OK(cuModuleGetFunction(&function, module, "add_one"));
    return function;
}

static int launch(handle function, address p, unsigned n, handle stream) {
    void *parameters[] = {&p, &n};
    return cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}
