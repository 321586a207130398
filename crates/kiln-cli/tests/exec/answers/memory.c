/* Memory of every kind, pointers and pools. */
#include "answers.h"

void allocations(void) {
    address p = 0, q = 0, start = 0;
    size_t n = 0, pitch = 0;
    begin();
    CODE(cuMemAlloc_v2(&p, 0));
    CODE(cuMemAlloc_v2(NULL, 256));
    CODE(cuMemAlloc_v2(&p, (size_t)1 << 50));
    CODE(cuMemAlloc_v2(&p, (size_t)-1));
    CODE(cuMemAlloc_v2(&p, 1));
    value("aligned to 256", p % 256);
    CODE(cuMemAlloc_v2(&q, 1000));
    CODE(cuMemGetAddressRange_v2(&start, &n, q + 10));
    value("its start", start == q);
    value("its bytes", (long long)n);
    CODE(cuMemGetAddressRange_v2(NULL, &n, q));
    CODE(cuMemGetAddressRange_v2(&start, NULL, q));
    CODE(cuMemGetAddressRange_v2(&start, &n, 0));
    CODE(cuMemGetAddressRange_v2(&start, &n, 0x1234));
    CODE(cuMemFree_v2(q + 16));
    CODE(cuMemFree_v2(0x1234));
    CODE(cuMemFree_v2(q));
    CODE(cuMemFree_v2(q));
    CODE(cuMemFree_v2(0));
    CODE(cuMemFree_v2(p));
    CODE(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
    value("pitch of 100", pitch);
    CODE(cuMemFree_v2(p));
    CODE(cuMemAllocPitch_v2(&p, &pitch, 513, 3, 16));
    value("pitch of 513", pitch);
    CODE(cuMemFree_v2(p));
    CODE(cuMemAllocPitch_v2(&p, &pitch, 0, 3, 4));
    CODE(cuMemAllocPitch_v2(&p, &pitch, 4, 0, 4));
    CODE(cuMemAllocPitch_v2(&p, &pitch, 100, 3, 3));
    CODE(cuMemAllocPitch_v2(&p, NULL, 100, 3, 4));
    CODE(cuMemAllocPitch_v2(NULL, &pitch, 100, 3, 4));
    CODE(cuMemAllocManaged(&p, 0, 1));
    CODE(cuMemAllocManaged(&p, 256, 0));
    CODE(cuMemAllocManaged(&p, 256, 3));
    CODE(cuMemAllocManaged(&p, 256, 4));
    CODE(cuMemAllocManaged(NULL, 256, 1));
    CODE(cuMemAllocManaged(&p, 256, 1));
    memset((void *)(size_t)p, 7, 256);
    CODE(cuMemFree_v2(p));
    CODE(cuMemGetInfo_v2(&n, &n));
    CODE(cuMemGetInfo_v2(NULL, &n));
    CODE(cuMemGetInfo_v2(&n, NULL));
}

void host_memory(void) {
    void *host = NULL, *own = NULL;
    address p = 0;
    unsigned flags = 77;
    begin();
    CODE(cuMemAllocHost_v2(&host, 0));
    CODE(cuMemAllocHost_v2(NULL, 256));
    CODE(cuMemAllocHost_v2(&host, 256));
    CODE(cuMemHostGetFlags(&flags, host));
    CODE(cuMemHostGetFlags(NULL, host));
    CODE(cuMemHostGetFlags(&flags, NULL));
    CODE(cuMemHostGetDevicePointer_v2(&p, host, 0));
    value("the same address", p == (address)(size_t)host);
    CODE(cuMemHostGetDevicePointer_v2(&p, host, 1));
    CODE(cuMemHostGetDevicePointer_v2(NULL, host, 0));
    CODE(cuMemHostGetDevicePointer_v2(&p, NULL, 0));
    CODE(cuMemFreeHost((char *)host + 16));
    CODE(cuMemFree_v2((address)(size_t)host));
    CODE(cuMemFreeHost(host));
    CODE(cuMemFreeHost(host));
    CODE(cuMemFreeHost(NULL));
    CODE(cuMemHostAlloc(&host, 256, 0x100));
    CODE(cuMemHostAlloc(&host, 0, 0));
    CODE(cuMemHostAlloc(NULL, 256, 0));
    CODE(cuMemHostAlloc(&host, 256, 3));
    CODE(cuMemHostGetFlags(&flags, host));
    value("portable and mapped", flags);
    CODE(cuMemFreeHost(host));
    CODE(cuMemHostAlloc(&host, 256, 4));
    CODE(cuMemHostGetFlags(&flags, host));
    value("write-combined", flags);
    CODE(cuMemFreeHost(host));
    if (posix_memalign(&own, 4096, 16384) != 0) return;
    CODE(cuMemHostRegister_v2(own, 0, 0));
    CODE(cuMemHostRegister_v2(NULL, 4096, 0));
    CODE(cuMemHostRegister_v2(own, 4096, 0x1000));
    CODE(cuMemHostRegister_v2(own, 8192, 1));
    NAMED("registered again", cuMemHostRegister_v2(own, 8192, 1));
    NAMED("a part registered again", cuMemHostRegister_v2((char *)own + 4096, 4096, 1));
    NAMED("beyond its end", cuMemHostRegister_v2((char *)own + 4096, 8192, 1));
    CODE(cuMemHostGetFlags(&flags, own));
    CODE(cuMemFreeHost(own));
    CODE(cuMemHostUnregister((char *)own + 4096));
    CODE(cuMemHostUnregister(NULL));
    CODE(cuMemHostUnregister(own));
    NAMED("unregistered again", cuMemHostUnregister(own));
    NAMED("never registered", cuMemHostUnregister((char *)own + 8192));
    free(own);
}

/* What an attribute says of a pointer; `wide` ones have eight bytes. */
static void ask(const char *name, int attribute, address pointer, int wide) {
    unsigned long long got = 0;
    char label[96];
    int code = cuPointerGetAttribute(&got, attribute, pointer);
    snprintf(label, sizeof label, "attribute %d of %s", attribute, name);
    answer(label, code);
    if (code == 0) value(label, (long long)(wide ? got : (unsigned)got));
}

void pointers(void) {
    address device = 0, managed = 0, asynchronous = 0, start = 0;
    void *host = NULL;
    int local = 0;
    unsigned long long identity = 0, other = 0;
    handle context = begin(), found = NULL;
    NEED(cuMemAlloc_v2(&device, 4096));
    NEED(cuMemAllocManaged(&managed, 4096, 1));
    NEED(cuMemAllocHost_v2(&host, 4096));
    NEED(cuMemAllocAsync(&asynchronous, 4096, NULL));
    NEED(cuCtxSynchronize());
    const struct {
        const char *name;
        address pointer;
    } each[] = {
        {"device memory", device},         {"its middle", device + 100}, {"managed memory", managed},
        {"pinned memory", (address)(size_t)host}, {"pool memory", asynchronous},
        {"the stack", (address)(size_t)&local}, {"nothing", 0},
    };
    /* Memory type, managed, device ordinal, mapped. */
    const int asked[] = {2, 8, 9, 14};
    for (unsigned i = 0; i < sizeof each / sizeof *each; i++)
        for (unsigned j = 0; j < sizeof asked / sizeof *asked; j++) ask(each[i].name, asked[j], each[i].pointer, 0);
    CODE(cuPointerGetAttribute(&found, 1, device));
    value("its context", found == context);
    CODE(cuPointerGetAttribute(&start, 11, device + 100));
    value("the start of its range", start == device);
    CODE(cuPointerGetAttribute(&start, 12, device + 100));
    value("the size of its range", (long long)start);
    CODE(cuPointerGetAttribute(&start, 3, device));
    value("its device pointer", start == device);
    CODE(cuPointerGetAttribute(&start, 4, device));
    CODE(cuPointerGetAttribute(&start, 4, (address)(size_t)host));
    value("its host pointer", start == (address)(size_t)host);
    CODE(cuPointerGetAttribute(&identity, 7, device));
    CODE(cuPointerGetAttribute(&other, 7, managed));
    value("different buffers", identity != other);
    CODE(cuPointerGetAttribute(NULL, 2, device));
    CODE(cuPointerGetAttribute(&start, 0, device));
    CODE(cuPointerGetAttribute(&start, 1000, device));
    CODE(cuPointerGetAttribute(&start, -1, device));
    CODE(cuMemFree_v2(device));
    NAMED("freed memory", cuPointerGetAttribute(&local, 2, device));
}

void pools(void) {
    handle pool = NULL, stream = NULL, current = NULL;
    address p = 0, q = 0;
    unsigned long long number = 7;
    int flag = 7;
    begin();
    CODE(cuDeviceGetDefaultMemPool(&pool, 0));
    CODE(cuDeviceGetDefaultMemPool(NULL, 0));
    CODE(cuDeviceGetDefaultMemPool(&pool, 1000));
    CODE(cuDeviceGetMemPool(&current, 0));
    value("the default one is current", current == pool);
    CODE(cuMemPoolGetAttribute(pool, 1, &flag));
    value("reuse follows events", flag);
    CODE(cuMemPoolGetAttribute(pool, 2, &flag));
    value("opportunistic reuse", flag);
    CODE(cuMemPoolGetAttribute(pool, 3, &flag));
    value("reuse by internal dependencies", flag);
    CODE(cuMemPoolGetAttribute(pool, 4, &number));
    value("release threshold", (long long)number);
    number = 1 << 20;
    CODE(cuMemPoolSetAttribute(pool, 4, &number));
    number = 0;
    CODE(cuMemPoolGetAttribute(pool, 4, &number));
    value("the threshold that was set", (long long)number);
    CODE(cuMemPoolGetAttribute(pool, 7, &number));
    value("used at first", (long long)number);
    CODE(cuMemPoolGetAttribute(pool, 77, &number));
    CODE(cuMemPoolGetAttribute(NULL, 4, &number));
    CODE(cuMemPoolGetAttribute(pool, 4, NULL));
    CODE(cuMemPoolSetAttribute(pool, 5, &number));
    CODE(cuStreamCreate(&stream, 1));
    CODE(cuMemAllocAsync(&p, 0, stream));
    CODE(cuMemAllocAsync(NULL, 256, stream));
    CODE(cuMemAllocAsync(&p, (size_t)1 << 50, stream));
    CODE(cuMemAllocAsync(&p, 1000, stream));
    CODE(cuMemAllocFromPoolAsync(&q, 1000, pool, stream));
    CODE(cuMemAllocFromPoolAsync(&q, 1000, NULL, stream));
    CODE(cuMemsetD8Async(p, 1, 1000, stream));
    CODE(cuMemFreeAsync(p, stream));
    NAMED("freed again", cuMemFreeAsync(p, stream));
    CODE(cuMemFreeAsync(0, stream));
    CODE(cuMemFreeAsync(0x1234, stream));
    CODE(cuMemFree_v2(q));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemAlloc_v2(&p, 1000));
    NAMED("plain memory freed in a stream", cuMemFreeAsync(p, stream));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemPoolTrimTo(pool, 0));
    CODE(cuMemPoolTrimTo(NULL, 0));
    CODE(cuMemPoolDestroy(pool));
    CODE(cuMemPoolDestroy(NULL));
    CODE(cuDeviceSetMemPool(0, NULL));
    CODE(cuDeviceSetMemPool(1000, pool));
}
