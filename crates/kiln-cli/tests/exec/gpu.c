/* A program on a GPU under `kiln exec --device cuda`; the first argument says which case. It does the same on a GPU and over a stand-in for the driver's library. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "driver_api.h"

int cuDeviceGetP2PAttribute(int *value, unsigned attribute, int device, int peer);
int cuCtxEnablePeerAccess(handle peer, unsigned flags);
int cuCtxDisablePeerAccess(handle peer);

enum { N = 1024 };

/* `set` writes a word n times; `crash` writes where no memory is. */
static const char *CODE =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry set(.param .u64 to, .param .u32 value, .param .u32 count)\n{\n"
    ".reg .pred %q;\n.reg .b32 %v, %n;\n.reg .b64 %p;\n"
    "ld.param.u64 %p, [to];\nld.param.u32 %v, [value];\nld.param.u32 %n, [count];\n"
    "again:\nsetp.eq.u32 %q, %n, 0;\n@%q bra done;\n"
    "st.global.u32 [%p], %v;\nadd.s64 %p, %p, 4;\nsub.u32 %n, %n, 1;\nbra again;\n"
    "done:\nret;\n}\n"
    ".visible .entry crash(.param .u64 to)\n{\n"
    ".reg .b32 %v;\n.reg .b64 %p;\n"
    "ld.param.u64 %p, [to];\nmov.u32 %v, 1;\nst.global.u32 [%p], %v;\nret;\n}\n";

static handle module, set_words, crash_there;
static unsigned back[N];

static int set(address to, unsigned number, unsigned count, handle stream) {
    void *parameters[] = {&to, &number, &count};
    return cuLaunchKernel(set_words, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static void start(void) {
    begin();
    OK(cuModuleLoadData(&module, CODE));
    OK(cuModuleGetFunction(&set_words, module, "set"));
    OK(cuModuleGetFunction(&crash_there, module, "crash"));
}

static void right(void) {
    handle first, second, event, timed;
    address p, pool, managed;
    void *pinned;
    int major = 0, version = 0;
    start();
    OK(cuDriverGetVersion(&version));
    OK(cuDeviceGetAttribute(&major, 75, 0));
    TRUE(major >= 7 && version >= 12040);
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(cuMemsetD32_v2(p, 3, N));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 3 && back[N - 1] == 3);
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuEventCreate(&event, 2));
    OK(cuEventCreate(&timed, 0));
    OK(cuEventRecord(timed, first));
    OK(set(p, 7, N, first));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(set(p, 8, N / 2, second));
    OK(cuMemAllocHost_v2(&pinned, 4 * N));
    OK(cuMemcpyDtoHAsync_v2(pinned, p, 4 * N, second));
    OK(cuStreamSynchronize(second));
    TRUE(((unsigned *)pinned)[0] == 8 && ((unsigned *)pinned)[N - 1] == 7);
    OK(cuEventRecord(event, first));
    OK(cuEventSynchronize(event));
    OK(cuMemAllocAsync(&pool, 4 * N, first));
    OK(set(pool, 5, N, first));
    OK(cuMemcpyDtoHAsync_v2(back, pool, sizeof back, first));
    OK(cuMemFreeAsync(pool, first));
    OK(cuStreamSynchronize(first));
    TRUE(back[0] == 5 && back[N - 1] == 5);
    OK(cuMemAllocManaged(&managed, 4 * N, 1));
    ((unsigned *)(size_t)managed)[1] = 11;
    OK(cuMemcpy(p, managed, 8));
    OK(cuMemcpyDtoH_v2(back, p, 8));
    TRUE(back[1] == 11);
    OK(cuMemFree_v2(managed));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(p));
    WANT(1, cuMemFree_v2(p));
    OK(cuEventDestroy_v2(timed));
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(second));
    OK(cuStreamDestroy_v2(first));
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* A stream that is gone, which NVIDIA's library follows. */
static void gone(void) {
    handle stream;
    start();
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamDestroy_v2(stream));
    WANT(400, cuStreamSynchronize(stream));
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* Work of two streams, with nothing between them. */
static void two_streams(const char *name) {
    handle first, second;
    address p;
    start();
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(cuMemsetD32_v2(p, 0, N));
    OK(cuCtxSynchronize());
    if (!strcmp(name, "copies")) {
        OK(cuMemsetD32Async(p, 1, N, first));
        OK(cuMemsetD32Async(p + 64, 2, 4, second));
    } else if (!strcmp(name, "kernel")) {
        OK(set(p, 1, N, first));
        OK(cuMemsetD32Async(p, 2, N, second));
    } else if (!strcmp(name, "halves")) {
        OK(set(p, 1, N / 2, first));
        OK(set(p + 2 * N, 1, N / 2, second));
    } else {
        OK(cuMemcpyDtoHAsync_v2(back, p, 4, first));
        OK(set(p, 1, N / 2, first));
        OK(cuMemsetD32Async(p + 2 * N, 1, N / 2, second));
    }
    OK(cuCtxSynchronize());
    OK(cuMemFree_v2(p));
}

static void fault(void) {
    handle stream;
    address nowhere = 64;
    start();
    OK(cuStreamCreate(&stream, 1));
    void *parameters[] = {&nowhere};
    OK(cuLaunchKernel(crash_there, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    WANT(700, cuStreamSynchronize(stream));
    WANT(700, cuStreamSynchronize(stream));
}

static int calls, told = -1, code_inside;

static void count(void *data) {
    address p;
    calls += (int)(size_t)data;
    code_inside = cuMemAlloc_v2(&p, 64);
}

static void callback(handle stream, int status, void *data) {
    TRUE(stream == *(handle *)data);
    told = status;
}

/* Functions of the program in the order of streams and graphs. */
static void functions(void) {
    handle stream, graph, exec, nodes[4];
    size_t size = 4;
    address p;
    unsigned pinned[2] = {0, 0};
    start();
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(set(p, 3, N, stream));
    OK(cuLaunchHostFunc(stream, count, (void *)1));
    OK(cuStreamAddCallback(stream, callback, &stream, 0));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 1 && told == 0 && code_inside == 800);
    OK(cuLaunchHostFunc(NULL, count, (void *)10));
    OK(cuStreamSynchronize(NULL));
    TRUE(calls == 11);
    OK(cuStreamBeginCapture_v2(stream, 2));
    OK(set(p, 4, N, stream));
    OK(cuLaunchHostFunc(stream, count, (void *)100));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, nodes, &size));
    TRUE(size == 2 && calls == 11);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 311);
    OK(cuMemcpyDtoH_v2(pinned, p, sizeof pinned));
    TRUE(pinned[1] == 4);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemFree_v2(p));
    OK(cuStreamDestroy_v2(stream));
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void in_worker(void) {
    start();
    WANT(801, cuLaunchHostFunc(NULL, count, NULL));
    WANT(801, cuStreamAddCallback(NULL, callback, NULL, 0));
    TRUE(calls == 0);
}

/* Memory of the program that kernels use, if the device can. */
static void registered(void) {
    int direct = -1;
    address p;
    unsigned *own;
    start();
    TRUE(posix_memalign((void **)&own, 4096, 4 * N) == 0);
    OK(cuMemHostRegister_v2(own, 4 * N, 2));
    OK(cuDeviceGetAttribute(&direct, 91, 0));
    if (direct) {
        OK(cuMemHostGetDevicePointer_v2(&p, own + 1, 0));
        TRUE(p == (address)(size_t)(own + 1));
        OK(set(p, 6, N - 1, NULL));
        OK(cuCtxSynchronize());
        TRUE(own[1] == 6 && own[N - 1] == 6);
        WANT(1, cuMemHostGetDevicePointer_v2(&p, own, 1));
    } else {
        WANT(801, cuMemHostGetDevicePointer_v2(&p, own, 0));
    }
    OK(cuMemHostUnregister(own));
    WANT(1, cuMemHostGetDevicePointer_v2(&p, own, 0));
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* A kernel of the first device writes memory of the second, once it was let into it. */
static void peers(const char *which) {
    handle first, second, again;
    address p;
    int can = -1, value = -1;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(cuMemsetD32_v2(p, 0, N));
    OK(cuCtxSynchronize());
    start();
    OK(cuCtxGetCurrent(&first));
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    OK(cuDeviceGetP2PAttribute(&value, 2, 0, 1));
    TRUE(can == value);
    WANT(1, cuDeviceGetP2PAttribute(&value, 99, 0, 1));
    if (!strcmp(which, "no peers")) {
        TRUE(!can);
        WANT(217, cuCtxEnablePeerAccess(second, 0));
        return;
    }
    TRUE(can);
    WANT(705, cuCtxDisablePeerAccess(second));
    WANT(1, cuCtxEnablePeerAccess(second, 1));
    WANT(201, cuCtxEnablePeerAccess(first, 0));
    if (strcmp(which, "peers before")) {
        OK(cuCtxEnablePeerAccess(second, 0));
        WANT(704, cuCtxEnablePeerAccess(second, 0));
    }
    if (!strcmp(which, "peers after")) OK(cuCtxDisablePeerAccess(second));
    OK(set(p, 9, N, NULL));
    if (strcmp(which, "peers")) {
        WANT(700, cuCtxSynchronize());
        return;
    }
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(second));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 9 && back[N - 1] == 9);
    OK(cuCtxSetCurrent(first));
    OK(cuCtxDisablePeerAccess(second));
    /* A context that ends is let into nothing any more. */
    OK(cuCtxEnablePeerAccess(second, 0));
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuCtxSetCurrent(again));
    WANT(705, cuCtxDisablePeerAccess(second));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSetCurrent(second));
    OK(cuMemFree_v2(p));
    OK(cuDevicePrimaryCtxRelease_v2(1));
}

/* Fills of one block that the host has: all patterns, more than is staged at once, rows with gaps, and in the order of a stream. */
static void fill_of_host(address p) {
    const size_t large = (3 << 20) + 8;
    unsigned char *bytes = (unsigned char *)(size_t)p;
    unsigned *words = (unsigned *)(size_t)p;
    handle stream;
    address copy;
    OK(cuMemsetD8_v2(p, 0x5a, large));
    TRUE(bytes[0] == 0x5a && bytes[1 << 20] == 0x5a && bytes[large - 1] == 0x5a);
    OK(cuMemsetD16_v2(p + 2, 0x1234, 3));
    TRUE(bytes[1] == 0x5a && bytes[2] == 0x34 && bytes[7] == 0x12 && bytes[8] == 0x5a);
    OK(cuMemsetD32_v2(p, 7, large / 4));
    TRUE(words[0] == 7 && words[(1 << 18) - 1] == 7 && words[1 << 18] == 7 && words[large / 4 - 1] == 7);
    OK(cuMemsetD2D32_v2(p, 64, 9, 3, 5));
    TRUE(words[0] == 9 && words[2] == 9 && words[3] == 7 && words[64] == 9 && words[66] == 9 && words[67] == 7 && words[80] == 7);
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAlloc_v2(&copy, 4 * N));
    OK(cuMemsetD8Async(p, 1, 4 * N, stream));
    OK(cuMemcpyDtoDAsync_v2(copy, p, 4 * N, stream));
    OK(cuMemsetD8Async(p, 2, 4 * N, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, copy, sizeof back));
    TRUE(back[0] == 0x01010101 && back[N - 1] == 0x01010101 && words[N - 1] == 0x02020202);
    OK(cuMemFree_v2(copy));
    OK(cuStreamDestroy_v2(stream));
}

/* Memory that the host has is filled as that of the device is. */
static void fills(int with_registered) {
    const size_t bytes = 4 << 20;
    address p, other;
    void *own;
    start();
    OK(cuMemAllocManaged(&p, bytes, 1));
    fill_of_host(p);
    OK(cuMemAllocManaged(&other, bytes, 1));
    OK(cuMemsetD32_v2(other, 3, N));
    OK(cuMemcpyDtoD_v2(p, other, 4 * N));
    OK(cuCtxSynchronize());
    TRUE(((unsigned *)(size_t)p)[N - 1] == 3);
    OK(cuMemFree_v2(other));
    OK(cuMemFree_v2(p));
    OK(cuMemAllocHost_v2(&own, bytes));
    fill_of_host((address)(size_t)own);
    OK(cuMemFreeHost(own));
    if (with_registered) {
        TRUE(posix_memalign(&own, 4096, bytes) == 0);
        OK(cuMemHostRegister_v2(own, bytes, 2));
        fill_of_host((address)(size_t)own);
        OK(cuMemHostUnregister(own));
    }
    OK(cuModuleUnload(module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* A thread whose call waits in the driver does not hold up the calls of others: a function of the host may need them. */
static address there;
static atomic_int is_done;

static void *copying(void *context) {
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 20; i++) {
        OK(cuMemcpyHtoD_v2(there, back, sizeof back));
        OK(cuMemcpyDtoH_v2(back, there, sizeof back));
    }
    atomic_store(&is_done, 1);
    return NULL;
}

static void *releasing(void *data) {
    (void)data;
    OK(cuDevicePrimaryCtxRelease_v2(0));
    atomic_store(&is_done, 2);
    return NULL;
}

/* To free pinned memory takes long here, as if the device had work: copies of pageable memory do not, and while a context ends other threads are not held up. */
static void held_up(void) {
    handle context, other, event;
    pthread_t thread;
    start();
    OK(cuCtxGetCurrent(&context));
    OK(cuMemAlloc_v2(&there, 4 * N));
    TRUE(pthread_create(&thread, NULL, copying, context) == 0);
    usleep(2000 * 1000);
    TRUE(atomic_load(&is_done) == 1);
    TRUE(pthread_join(thread, NULL) == 0);
    OK(cuMemFree_v2(there));
    OK(cuModuleUnload(module));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuEventCreate(&event, 2));
    TRUE(pthread_create(&thread, NULL, releasing, NULL) == 0);
    usleep(500 * 1000);
    OK(cuEventRecord(event, NULL));
    OK(cuEventQuery(event));
    OK(cuCtxSetCurrent(context));
    WANT(709, cuCtxSynchronize());
    TRUE(atomic_load(&is_done) == 1);
    TRUE(pthread_join(thread, NULL) == 0);
    OK(cuCtxDestroy_v2(other));
}

static void refused(void) {
    handle event;
    address p;
    char shared[64];
    start();
    OK(cuMemAlloc_v2(&p, 4 * N));
    WANT(801, cuEventCreate(&event, 6));
    extern int cuIpcGetMemHandle(void *, address);
    WANT(801, cuIpcGetMemHandle(shared, p));
    OK(cuMemFree_v2(p));
}

static void leaves(void) {
    address p;
    start();
    OK(cuMemAlloc_v2(&p, 4 * N));
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    alarm(60);
    if (!strcmp(name, "right")) right();
    else if (!strcmp(name, "gone")) gone();
    else if (!strcmp(name, "fault")) fault();
    else if (!strcmp(name, "refused")) refused();
    else if (!strcmp(name, "leaves")) leaves();
    else if (!strcmp(name, "functions")) functions();
    else if (!strcmp(name, "in worker")) in_worker();
    else if (!strcmp(name, "registered")) registered();
    else if (!strcmp(name, "held up")) held_up();
    else if (!strcmp(name, "fills")) fills(1);
    else if (!strcmp(name, "fills in worker")) fills(0);
    else if (strstr(name, "peers")) peers(name);
    else two_streams(name);
    return 0;
}
