/* Before initialisation, without a context, devices, contexts, errors. */
#include "answers.h"

/* The calls that need a context, or the library at the least. */
static void every_call(void) {
    handle h = NULL;
    address p = 0;
    size_t n = 0;
    int i = 0;
    unsigned u = 0;
    float f = 0;
    char text[64];
    void *host = NULL;
    CODE(cuDriverGetVersion(&i));
    CODE(cuDeviceGetCount(&i));
    CODE(cuDeviceGet(&i, 0));
    CODE(cuDeviceGetName(text, sizeof text, 0));
    CODE(cuDeviceGetAttribute(&i, 1, 0));
    CODE(cuDeviceTotalMem_v2(&n, 0));
    CODE(cuCtxGetCurrent(&h));
    CODE(cuCtxSetCurrent(NULL));
    CODE(cuCtxGetDevice(&i));
    CODE(cuCtxGetFlags(&u));
    CODE(cuCtxPopCurrent_v2(&h));
    CODE(cuCtxPushCurrent_v2(NULL));
    CODE(cuCtxSynchronize());
    CODE(cuCtxGetLimit(&n, 0));
    CODE(cuCtxGetCacheConfig(&i));
    CODE(cuCtxGetStreamPriorityRange(&i, &i));
    CODE(cuMemGetInfo_v2(&n, &n));
    CODE(cuMemAlloc_v2(&p, 256));
    CODE(cuMemAllocManaged(&p, 256, 1));
    CODE(cuMemAllocHost_v2(&host, 256));
    CODE(cuMemHostAlloc(&host, 256, 0));
    CODE(cuMemAllocAsync(&p, 256, NULL));
    CODE(cuMemFree_v2(0));
    CODE(cuMemcpyHtoD_v2(0, text, 4));
    CODE(cuMemcpyDtoH_v2(text, 0, 4));
    CODE(cuMemcpyDtoD_v2(0, 0, 4));
    CODE(cuMemsetD8_v2(0, 0, 4));
    CODE(cuStreamCreate(&h, 0));
    CODE(cuStreamSynchronize(NULL));
    CODE(cuStreamQuery(NULL));
    CODE(cuEventCreate(&h, 0));
    CODE(cuModuleLoadData(&h, ADD_ONE));
    CODE(cuLibraryLoadData(&h, ADD_ONE, NULL, NULL, 0, NULL, NULL, 0));
    CODE(cuLinkCreate_v2(0, NULL, NULL, &h));
    CODE(cuPointerGetAttribute(&i, 2, 0x1000));
    CODE(cuMemHostRegister_v2(text, 16, 0));
    CODE(cuProfilerStop());
    (void)f;
}

void before_init(void) {
    const char *name = NULL;
    int i = 0;
    every_call();
    NAMED("cuGetErrorName of 1", cuGetErrorName(1, &name));
    NAMED("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&(handle){0}, 0));
    NAMED("cuCtxCreate", cuCtxCreate_v2(&(handle){0}, 0, 0));
    NAMED("cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState(0, &(unsigned){0}, &i));
    NAMED("cuInit with flags", cuInit(1));
    NAMED("still not initialised", cuDeviceGetCount(&i));
    NAMED("cuInit", cuInit(0));
    NAMED("cuInit again", cuInit(0));
    NAMED("cuInit again with flags", cuInit(7));
    NAMED("now initialised", cuDeviceGetCount(&i));
}

void no_context(void) {
    NEED(cuInit(0));
    every_call();
}

/* Codes up to this one are asked for their names. */
enum { LAST_CODE = 1000 };

void error_names(void) {
    for (int code = 0; code <= LAST_CODE; code++) {
        const char *name = NULL, *text = NULL;
        int named = cuGetErrorName(code, &name), told = cuGetErrorString(code, &text);
        char label[32];
        if (named != 0 && told != 0 && code != LAST_CODE) {
            if (name != NULL || text != NULL) value("a name in spite of the code", code);
            continue;
        }
        snprintf(label, sizeof label, "%d", code);
        NAMED(label, named);
        words(label, name ? name : "none");
        words("its text", text ? text : "none");
    }
    NAMED("a negative code", cuGetErrorName(-1, &(const char *){0}));
    NAMED("name into nothing", cuGetErrorName(1, NULL));
    NAMED("text into nothing", cuGetErrorString(1, NULL));
}

void devices(void) {
    int i = 0, device = 7;
    size_t n = 0;
    char text[8] = "zzzzzzz", id[32];
    NEED(cuInit(0));
    CODE(cuDeviceGetCount(NULL));
    CODE(cuDeviceGet(&device, 0));
    value("the first device", device);
    CODE(cuDeviceGet(&device, -1));
    CODE(cuDeviceGet(&device, 1000));
    CODE(cuDeviceGet(NULL, 0));
    value("unchanged", device);
    CODE(cuDeviceGetName(text, 4, 0));
    value("the name is ended", text[3]);
    CODE(cuDeviceGetName(text, 4, 1000));
    CODE(cuDeviceGetName(text, 4, -1));
    CODE(cuDeviceTotalMem_v2(NULL, 0));
    CODE(cuDeviceTotalMem_v2(&n, 1000));
    CODE(cuDeviceTotalMem_v2(&n, -1));
    CODE(cuDeviceGetAttribute(NULL, 1, 0));
    CODE(cuDeviceGetAttribute(&i, 1, 1000));
    CODE(cuDeviceGetAttribute(&i, 1, -1));
    CODE(cuDeviceGetAttribute(&i, 0, 0));
    CODE(cuDeviceGetAttribute(&i, -1, 0));
    CODE(cuDeviceGetAttribute(&i, 100000, 0));
    CODE(cuDeviceGetUuid_v2(NULL, 0));
    CODE(cuDeviceGetUuid_v2(id, 1000));
    CODE(cuDeviceGetUuid_v2(id, 0));
    CODE(cuDeviceGetPCIBusId(id, sizeof id, 0));
    CODE(cuDeviceGetPCIBusId(id, 0, 0));
    CODE(cuDeviceGetPCIBusId(NULL, sizeof id, 0));
    CODE(cuDeviceGetPCIBusId(id, sizeof id, 1000));
    CODE(cuDeviceGetByPCIBusId(&i, id));
    value("the device of its bus", i);
    CODE(cuDeviceGetByPCIBusId(&i, "ffff:ff:1f.7"));
    CODE(cuDeviceGetByPCIBusId(&i, "no bus"));
    CODE(cuDeviceGetByPCIBusId(&i, ""));
    CODE(cuDeviceGetByPCIBusId(&i, NULL));
    CODE(cuDeviceGetByPCIBusId(NULL, id));
    CODE(cuDeviceCanAccessPeer(&i, 0, 0));
    value("itself as peer", i);
    CODE(cuDeviceCanAccessPeer(&i, 0, 1000));
    CODE(cuDeviceCanAccessPeer(NULL, 0, 0));
    CODE(cuDeviceComputeCapability(&i, NULL, 0));
    CODE(cuDeviceComputeCapability(&i, &i, 1000));
    CODE(cuDriverGetVersion(NULL));
    CODE(cuDeviceGetName(NULL, 8, 0));
}

/* Attributes whose values are those of a compute capability or of every device, and not of one machine. */
static const int SAME_VALUES[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 19, 41, 75, 76, 78, 79, 81, 82, 83, 90, 97, 105, 106};

void attributes(void) {
    NEED(cuInit(0));
    for (int attribute = 1; attribute < 160; attribute++) {
        char name[32];
        int number = 0;
        snprintf(name, sizeof name, "%d", attribute);
        NAMED(name, cuDeviceGetAttribute(&number, attribute, 0));
        for (unsigned i = 0; i < sizeof SAME_VALUES / sizeof *SAME_VALUES; i++)
            if (SAME_VALUES[i] == attribute) value(name, number);
    }
}

void contexts(void) {
    handle one = NULL, two = NULL, current = NULL;
    unsigned flags = 77, version = 0;
    int device = 7;
    unsigned long long id = 0, other = 0;
    NEED(cuInit(0));
    CODE(cuCtxCreate_v2(NULL, 0, 0));
    CODE(cuCtxCreate_v2(&one, 0, 1000));
    CODE(cuCtxCreate_v2(&one, 0, -1));
    CODE(cuCtxCreate_v2(&one, 0x10000, 0));
    CODE(cuCtxCreate_v2(&one, 3, 0));
    CODE(cuCtxCreate_v2(&one, 4, 0));
    CODE(cuCtxGetCurrent(&current));
    value("the new one is current", current == one);
    CODE(cuCtxGetFlags(&flags));
    value("its flags", flags);
    CODE(cuCtxGetDevice(&device));
    value("its device", device);
    CODE(cuCtxGetApiVersion(one, &version));
    value("a version", version >= 3010);
    CODE(cuCtxGetApiVersion(NULL, &version));
    CODE(cuCtxGetApiVersion(one, NULL));
    CODE(cuCtxGetId(one, &id));
    CODE(cuCtxCreate_v2(&two, 0, 0));
    CODE(cuCtxGetId(two, &other));
    value("different ids", id != other);
    CODE(cuCtxGetId(NULL, &id));
    value("nothing is the current one", id == other);
    CODE(cuCtxGetCurrent(&current));
    value("the second is current", current == two);
    CODE(cuCtxPopCurrent_v2(&current));
    value("the second was popped", current == two);
    CODE(cuCtxGetCurrent(&current));
    value("the first is current", current == one);
    CODE(cuCtxPushCurrent_v2(two));
    CODE(cuCtxPushCurrent_v2(two));
    CODE(cuCtxPushCurrent_v2(one));
    CODE(cuCtxPopCurrent_v2(NULL));
    CODE(cuCtxGetCurrent(&current));
    value("popped into nothing", current == two);
    CODE(cuCtxGetCurrent(NULL));
    CODE(cuCtxGetDevice(NULL));
    CODE(cuCtxGetFlags(NULL));
    CODE(cuCtxSetCurrent(one));
    CODE(cuCtxPopCurrent_v2(&current));
    value("set replaces the top", current == one);
    CODE(cuCtxPopCurrent_v2(&current));
    value("below it", current == two);
    CODE(cuCtxPopCurrent_v2(&current));
    value("below that", current == one);
    CODE(cuCtxPopCurrent_v2(&current));
    CODE(cuCtxGetCurrent(&current));
    value("none is left", current == NULL);
    CODE(cuCtxSynchronize());
    CODE(cuCtxSetCurrent(one));
    CODE(cuCtxSetCurrent(NULL));
    CODE(cuCtxGetCurrent(&current));
    value("set to nothing", current == NULL);
    CODE(cuCtxPushCurrent_v2(one));
    CODE(cuCtxDestroy_v2(one));
    CODE(cuCtxGetCurrent(&current));
    value("destroyed while current", current == NULL);
    CODE(cuCtxSynchronize());
    CODE(cuCtxPushCurrent_v2(two));
    CODE(cuCtxSynchronize());
    CODE(cuCtxDestroy_v2(NULL));
    CODE(cuCtxPopCurrent_v2(&current));
    CODE(cuCtxDestroy_v2(two));
}

void primary_contexts(void) {
    handle one = NULL, two = NULL;
    unsigned flags = 77;
    int active = 77;
    address p = 0;
    NEED(cuInit(0));
    CODE(cuDevicePrimaryCtxGetState(0, &flags, &active));
    value("flags at first", flags);
    value("active at first", active);
    CODE(cuDevicePrimaryCtxGetState(1000, &flags, &active));
    CODE(cuDevicePrimaryCtxGetState(0, NULL, &active));
    CODE(cuDevicePrimaryCtxGetState(0, &flags, NULL));
    CODE(cuDevicePrimaryCtxRelease_v2(0));
    CODE(cuDevicePrimaryCtxSetFlags_v2(0, 0x100000));
    CODE(cuDevicePrimaryCtxSetFlags_v2(1000, 0));
    CODE(cuDevicePrimaryCtxSetFlags_v2(0, 4));
    CODE(cuDevicePrimaryCtxGetState(0, &flags, &active));
    value("flags that were set", flags);
    CODE(cuDevicePrimaryCtxRetain(NULL, 0));
    CODE(cuDevicePrimaryCtxRetain(&one, 1000));
    CODE(cuDevicePrimaryCtxRetain(&one, 0));
    CODE(cuDevicePrimaryCtxRetain(&two, 0));
    value("one for all", one == two);
    CODE(cuDevicePrimaryCtxGetState(0, &flags, &active));
    value("active", active);
    CODE(cuCtxDestroy_v2(one));
    CODE(cuCtxSetCurrent(one));
    CODE(cuMemAlloc_v2(&p, 256));
    CODE(cuDevicePrimaryCtxRelease_v2(0));
    CODE(cuMemFree_v2(p));
    CODE(cuDevicePrimaryCtxReset_v2(1000));
    CODE(cuDevicePrimaryCtxRelease_v2(0));
    CODE(cuDevicePrimaryCtxGetState(0, &flags, &active));
    value("no more active", active);
    CODE(cuMemAlloc_v2(&p, 256));
    CODE(cuDevicePrimaryCtxRelease_v2(0));
    CODE(cuDevicePrimaryCtxRetain(&one, 0));
    CODE(cuCtxSetCurrent(one));
    CODE(cuMemAlloc_v2(&p, 256));
    CODE(cuDevicePrimaryCtxReset_v2(0));
    CODE(cuDevicePrimaryCtxGetState(0, &flags, &active));
    value("after a reset", active);
}

void context_limits(void) {
    size_t n = 0;
    int config = 7, least = 7, greatest = 7;
    begin();
    for (int limit = 0; limit < 10; limit++) {
        char name[32];
        snprintf(name, sizeof name, "cuCtxGetLimit of %d", limit);
        NAMED(name, cuCtxGetLimit(&n, limit));
    }
    CODE(cuCtxGetLimit(NULL, 0));
    CODE(cuCtxGetLimit(&n, -1));
    CODE(cuCtxSetLimit(0, 4096));
    CODE(cuCtxGetLimit(&n, 0));
    value("a stack of 4096", n);
    CODE(cuCtxSetLimit(2, 16 << 20));
    CODE(cuCtxGetLimit(&n, 2));
    value("a heap of 16 MiB", n);
    CODE(cuCtxSetLimit(77, 0));
    CODE(cuCtxGetCacheConfig(&config));
    value("cache", config);
    CODE(cuCtxSetCacheConfig(1));
    CODE(cuCtxGetCacheConfig(NULL));
    CODE(cuCtxGetStreamPriorityRange(&least, &greatest));
    value("least", least);
    value("greatest", greatest);
    CODE(cuCtxGetStreamPriorityRange(NULL, NULL));
    CODE(cuCtxResetPersistingL2Cache());
}
