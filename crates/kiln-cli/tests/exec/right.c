/* A program without mistakes: memory, copies, streams, events, modules and launches. */
#include "driver_api.h"

enum { N = 1000 };

static unsigned words[N], back[N];

static void set(void *data) { *(int *)data = 7; }

static void default_stream(handle function) {
    address p;
    OK(cuMemAlloc_v2(&p, sizeof words));
    for (unsigned i = 0; i < N; i++) words[i] = i;
    OK(cuMemcpyHtoD_v2(p, words, sizeof words));
    OK(launch(function, p, N, NULL));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    for (unsigned i = 0; i < N; i++) TRUE(back[i] == i + 1);
    OK(cuMemFree_v2(p));
}

/* A blocking stream is ordered with the default stream in both directions, without events. */
static void blocking_streams(handle function) {
    address p;
    handle one, two;
    OK(cuMemAlloc_v2(&p, sizeof words));
    OK(cuStreamCreate(&one, 0));
    OK(cuStreamCreate(&two, 0));
    OK(cuMemsetD32Async(p, 5, N, one));
    OK(launch(function, p, N, NULL));
    OK(launch(function, p, N, two));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 7 && back[N - 1] == 7);
    /* A stream may be destroyed with work on it; the default stream still comes after that. */
    OK(launch(function, p, N, one));
    OK(cuStreamDestroy_v2(one));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 8);
    OK(cuStreamDestroy_v2(two));
    OK(cuMemFree_v2(p));
}

static void events(handle function) {
    address p;
    handle one, two, event, begin, end;
    float milliseconds = -1;
    OK(cuMemAlloc_v2(&p, sizeof words));
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    OK(cuEventCreate(&event, 2));
    OK(cuEventCreate(&begin, 0));
    OK(cuEventCreate(&end, 0));
    OK(cuEventQuery(event));
    WANT(400, cuEventElapsedTime(&milliseconds, begin, end));
    OK(cuEventRecord(begin, one));
    OK(cuMemcpyHtoDAsync_v2(p, words, sizeof words, one));
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    /* An event may be destroyed while a stream waits for it. */
    OK(cuEventDestroy_v2(event));
    OK(launch(function, p, N, two));
    OK(cuEventRecord(end, two));
    OK(cuEventSynchronize(end));
    OK(cuEventElapsedTime(&milliseconds, begin, end));
    TRUE(milliseconds >= 0);
    OK(cuMemcpyDtoHAsync_v2(back, p, sizeof back, two));
    OK(cuStreamSynchronize(two));
    TRUE(back[3] == words[3] + 1);
    OK(cuStreamQuery(two));
    OK(cuEventDestroy_v2(begin));
    OK(cuEventDestroy_v2(end));
    OK(cuStreamDestroy_v2(one));
    OK(cuStreamDestroy_v2(two));
    OK(cuMemFree_v2(p));
}

/* Pinned and managed memory, which kernels reach; registered memory; a pool; a function of the host. */
static void kinds_of_memory(handle function) {
    handle stream;
    unsigned *pinned;
    address managed, pooled, same = 0;
    int seen = 0, kind = 0;
    static unsigned registered[4096];
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAllocHost_v2((void **)&pinned, sizeof words));
    OK(cuMemAllocManaged(&managed, sizeof words, 1));
    for (unsigned i = 0; i < N; i++) pinned[i] = ((unsigned *)managed)[i] = i;
    OK(launch(function, (address)pinned, N, stream));
    OK(launch(function, managed, N, stream));
    OK(cuMemAllocAsync(&pooled, sizeof words, stream));
    OK(cuMemcpyHtoDAsync_v2(pooled, pinned, sizeof words, stream));
    OK(cuMemHostRegister_v2(registered, sizeof registered, 0));
    WANT(712, cuMemHostRegister_v2(registered, sizeof registered, 0));
    OK(cuMemcpyDtoHAsync_v2(registered, pooled, sizeof words, stream));
    OK(cuMemFreeAsync(pooled, stream));
    OK(cuLaunchHostFunc(stream, set, &seen));
    OK(cuStreamSynchronize(stream));
    TRUE(seen == 7 && pinned[9] == 10 && ((unsigned *)managed)[9] == 10 && registered[9] == 10);
    OK(cuPointerGetAttribute(&kind, 2, (address)pinned));
    TRUE(kind == 1);
    OK(cuPointerGetAttribute(&kind, 8, managed));
    TRUE(kind == 1);
    OK(cuPointerGetAttribute(&same, 11, managed + 8));
    TRUE(same == managed);
    OK(cuMemHostUnregister(registered));
    WANT(713, cuMemHostUnregister(registered));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(managed));
    OK(cuStreamDestroy_v2(stream));
}

static void rows(void) {
    address p;
    size_t pitch;
    unsigned char from[8][16], to[8][16];
    struct copy2d up = {.from_kind = 1, .from_host = from, .from_pitch = 16, .to_kind = 2, .width = 10, .height = 8};
    struct copy2d down = {.from_kind = 2, .to_kind = 1, .to_host = to, .to_pitch = 16, .width = 10, .height = 8};
    memset(from, 3, sizeof from);
    memset(to, 9, sizeof to);
    OK(cuMemAllocPitch_v2(&p, &pitch, 10, 8, 4));
    up.to_device = down.from_device = p;
    up.to_pitch = down.from_pitch = pitch;
    OK(cuMemcpy2D_v2(&up));
    OK(cuMemcpy2D_v2(&down));
    TRUE(to[0][0] == 3 && to[7][9] == 3 && to[7][10] == 9);
    OK(cuMemFree_v2(p));
}

static void variables_and_links(void) {
    handle link, module, function, missing = (handle)1;
    void *code;
    address bias, p;
    size_t bytes;
    unsigned two = 2;
    int value;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, 1, (void *)ADD_ONE, strlen(ADD_ONE) + 1, "add_one", 0, NULL, NULL));
    OK(cuLinkComplete(link, &code, &bytes));
    OK(cuModuleLoadData(&module, code));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&function, module, "add_one"));
    WANT(500, cuModuleGetFunction(&missing, module, "missing"));
    TRUE(missing == NULL);
    OK(cuModuleGetGlobal_v2(&bias, &bytes, module, "bias"));
    TRUE(bytes == 4);
    OK(cuMemcpyHtoD_v2(bias, &two, 4));
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemsetD8_v2(p, 0, 256));
    OK(launch(function, p, 64, NULL));
    OK(cuMemcpyDtoH_v2(back, p, 256));
    TRUE(back[0] == 3 && back[63] == 3);
    OK(cuFuncGetAttribute(&value, 0, function));
    TRUE(value == 1024);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, 0));
    TRUE(value == 8);
    OK(cuMemFree_v2(p));
    OK(cuModuleUnload(module));
}

int main(void) {
    int version, count, status;
    void *found;
    handle context = begin(), function = add_one();
    OK(cuDriverGetVersion(&version));
    OK(cuDeviceGetCount(&count));
    TRUE(version == 13000 && count == 1);
    OK(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    TRUE(found == (void *)cuMemAlloc_v2 && status == 0);
    default_stream(function);
    blocking_streams(function);
    events(function);
    kinds_of_memory(function);
    rows();
    variables_and_links();
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    puts("right");
    (void)context;
    return 0;
}
