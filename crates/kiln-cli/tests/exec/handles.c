/* Wrong handles and pointers: the code of the driver, and no crash. */
#include "driver_api.h"

static void wild(void) {
    handle handles[] = {(handle)8, (handle)0xdeadbeef, (handle)~0ull, (handle)0x4200000100000000ull};
    for (unsigned i = 0; i < sizeof handles / sizeof *handles; i++) {
        handle h = handles[i];
        WANT(400, cuStreamSynchronize(h));
        WANT(400, cuStreamDestroy_v2(h));
        WANT(400, cuEventRecord(h, NULL));
        WANT(400, cuEventDestroy_v2(h));
        WANT(400, cuModuleUnload(h));
        WANT(400, cuLaunchKernel(h, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        WANT(201, cuCtxSetCurrent(h));
        WANT(201, cuCtxDestroy_v2(h));
    }
}

static void pointers(handle function) {
    address p, none = 7;
    size_t bytes;
    unsigned word = 0;
    void *bad[] = {(void *)8, (void *)16};
    const char *name;
    OK(cuMemAlloc_v2(&p, 256));
    WANT(1, cuMemAlloc_v2(NULL, 4));
    WANT(1, cuMemAlloc_v2(&none, 0));
    TRUE(none == 0);
    WANT(2, cuMemAlloc_v2(&(address){0}, (size_t)1 << 50));
    WANT(1, cuMemcpyHtoD_v2(p, NULL, 4));
    WANT(1, cuMemcpyHtoD_v2(p, (void *)16, 4));
    WANT(1, cuMemcpyDtoH_v2((void *)16, p, 0) == 0);
    OK(cuMemsetD8_v2(p, 1, 256));
    WANT(1, cuMemcpyDtoH_v2((void *)16, p, 4));
    WANT(1, cuMemcpyHtoD_v2(p + 254, &word, 4));
    WANT(1, cuMemcpyHtoD_v2(0x1234, &word, 4));
    WANT(1, cuMemcpyDtoD_v2(p, p + 512, 4));
    WANT(1, cuMemsetD32_v2(p + 1, 0, 1));
    WANT(1, cuMemFree_v2(p + 16));
    WANT(1, cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, bad, NULL));
    WANT(1, cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    WANT(1, cuLaunchKernel(function, 0, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&p, &word}, NULL));
    WANT(1, cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, (void *[]){&p, &word}, NULL));
    WANT(1, cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 1 << 20, NULL, (void *[]){&p, &word}, NULL));
    WANT(1, cuGetErrorName(123456, &name));
    OK(cuGetErrorName(700, &name));
    TRUE(!strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    WANT(1, cuModuleLoadData(&(handle){0}, NULL));
    WANT(200, cuModuleLoadData(&(handle){0}, "no PTX"));
    WANT(200, cuModuleLoadData(&(handle){0}, "\x7f" "ELF"));
    WANT(209, cuModuleLoadData(&(handle){0}, "\x7f" "ELF\x02\x01\x01"));
    OK(cuMemGetInfo_v2(&bytes, &bytes));
    OK(cuMemFree_v2(p));
    WANT(1, cuMemFree_v2(p));
    OK(cuMemFree_v2(0));
}

/* After a context is destroyed, calls that need it say so, and its objects are gone. */
static void destroyed(void) {
    handle context, stream, event, current;
    address p;
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuCtxPushCurrent_v2(context));
    OK(cuCtxDestroy_v2(context));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == context);
    WANT(709, cuCtxSynchronize());
    WANT(709, cuMemAlloc_v2(&p, 64));
    WANT(400, cuStreamSynchronize(stream));
    WANT(400, cuEventQuery(event));
    WANT(201, cuCtxDestroy_v2(context));
    WANT(201, cuCtxSetCurrent(context));
    OK(cuCtxPopCurrent_v2(&current));
    OK(cuCtxSetCurrent(NULL));
    WANT(201, cuCtxSynchronize());
    WANT(201, cuMemAlloc_v2(&p, 64));
}

int main(void) {
    handle context;
    int count;
    WANT(3, cuDeviceGetCount(&count));
    WANT(1, cuInit(1));
    context = begin();
    WANT(101, cuDeviceGet(&count, 5));
    WANT(1, cuDeviceGet(NULL, 0));
    wild();
    pointers(add_one());
    OK(cuCtxSetCurrent(context));
    destroyed();
    puts("handles");
    return 0;
}
