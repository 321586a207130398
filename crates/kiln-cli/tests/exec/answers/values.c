/* Values in memory that streams write and wait for, and memory and events of other processes. */
#include "answers.h"
#include "../values.h"

static union operation operation(int kind, address at, unsigned long long value, unsigned flags) {
    union operation operation;
    memset(&operation, 0, sizeof operation);
    operation.value.kind = kind;
    operation.value.at = at;
    operation.value.value = value;
    operation.value.flags = flags;
    return operation;
}

void stream_values(void) {
    handle stream = NULL, other = NULL, context = begin(), gone = NULL;
    address p = 0, freed = 0;
    void *pinned = NULL;
    unsigned long long back = 0;
    NEED(cuMemAlloc_v2(&p, 64));
    NEED(cuMemAlloc_v2(&freed, 64));
    NEED(cuMemFree_v2(freed));
    NEED(cuMemHostAlloc(&pinned, 64, 0));
    NEED(cuMemsetD8_v2(p, 0, 64));
    NEED(cuCtxSynchronize());
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuStreamWriteValue32_v2(stream, p, 7, 0));
    CODE(cuStreamWaitValue32_v2(stream, p, 7, EQ));
    CODE(cuStreamWaitValue32_v2(stream, p, 6, GEQ));
    CODE(cuStreamWaitValue32_v2(stream, p, 7, GEQ));
    CODE(cuStreamWaitValue32_v2(stream, p, 0x80000010, GEQ));
    CODE(cuStreamWaitValue32_v2(stream, p, 2, AND));
    CODE(cuStreamWaitValue32_v2(stream, p, 8, NOR));
    CODE(cuStreamWaitValue32_v2(stream, p, 7, EQ | FLUSH));
    CODE(cuStreamWaitValue32_v2(stream, p, 7, 4));
    CODE(cuStreamWaitValue32_v2(stream, p, 7, 0x10));
    CODE(cuStreamWriteValue32_v2(stream, p, 7, 1));
    CODE(cuStreamWriteValue32_v2(stream, p, 7, 2));
    CODE(cuStreamWriteValue64_v2(stream, p + 8, 0x100000007, 0));
    CODE(cuStreamWriteValue64_v2(stream, p + 8, 0x100000007, 1));
    CODE(cuStreamWaitValue64_v2(stream, p + 8, 0x100000007, EQ));
    CODE(cuStreamWaitValue64_v2(stream, p + 8, 0x100000006, GEQ));
    CODE(cuStreamWaitValue64_v2(stream, p + 8, 0x100000000, AND));
    CODE(cuStreamWaitValue64_v2(stream, p + 8, 0, NOR));
    CODE(cuStreamWaitValue64_v2(stream, p + 8, 0, 9));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemcpyDtoH_v2(&back, p + 8, 8));
    value("written", (long long)back);
    CODE(cuStreamWriteValue32_v2(NULL, p, 9, 0));
    CODE(cuStreamWaitValue32_v2(NULL, p, 9, EQ));
    CODE(cuStreamWriteValue32_v2((handle)2, p, 9, 0));
    NEED(cuCtxSynchronize());
    CODE(cuStreamWriteValue32_v2(stream, p + 1, 7, 0));
    CODE(cuStreamWriteValue32_v2(stream, p + 2, 7, 0));
    CODE(cuStreamWaitValue32_v2(stream, p + 2, 7, 0));
    CODE(cuStreamWriteValue64_v2(stream, p + 4, 7, 0));
    CODE(cuStreamWaitValue64_v2(stream, p + 4, 7, 0));
    CODE(cuStreamWriteValue32_v2(stream, 0, 7, 0));
    CODE(cuStreamWaitValue32_v2(stream, 0, 7, 0));
    CODE(cuStreamWriteValue32_v2(stream, 64, 7, 0));
    CODE(cuStreamWaitValue32_v2(stream, 64, 7, 0));
    CODE(cuStreamWriteValue32_v2(stream, (address)(size_t)pinned, 7, 0));
    CODE(cuStreamWaitValue32_v2(stream, (address)(size_t)pinned, 7, EQ));
    CODE(cuStreamSynchronize(stream));
    value("pinned", *(unsigned *)pinned);
    CODE(cuStreamWriteValue32(stream, p, 7, 0));
    CODE(cuStreamWaitValue32(stream, p, 0, 0));
    CODE(cuStreamWriteValue64(stream, p, 7, 0));
    CODE(cuStreamWaitValue64(stream, p, 0, 0));
    NEED(cuStreamCreate(&gone, 1));
    NEED(cuStreamDestroy_v2(gone));
    CODE(cuStreamWriteValue32_v2(gone, p, 7, 0));
    CODE(cuStreamWaitValue32_v2(gone, p, 7, 0));
    CODE(cuCtxCreate_v2(&other, 0, 0));
    CODE(cuStreamWriteValue32_v2(stream, p, 7, 0));
    CODE(cuStreamWaitValue32_v2(stream, p, 7, EQ));
    CODE(cuCtxSetCurrent(NULL));
    CODE(cuStreamWriteValue32_v2(stream, p, 7, 0));
    CODE(cuStreamWriteValue32_v2(NULL, p, 7, 0));
    CODE(cuCtxSetCurrent(context));
    CODE(cuCtxDestroy_v2(other));
    CODE(cuStreamSynchronize(stream));
}

void stream_batches(void) {
    handle stream = NULL;
    address p = 0;
    unsigned back[4] = {0};
    int attribute = 0;
    begin();
    NEED(cuMemAlloc_v2(&p, 64));
    NEED(cuMemsetD8_v2(p, 0, 64));
    NEED(cuCtxSynchronize());
    NEED(cuStreamCreate(&stream, 1));
    static const int ATTRIBUTES[] = {92, 93, 94, 98, 122, 123};
    for (int i = 0; i < 6; i++) {
        char name[32];
        NEED(cuDeviceGetAttribute(&attribute, ATTRIBUTES[i], 0));
        snprintf(name, sizeof name, "attribute %d", ATTRIBUTES[i]);
        value(name, attribute);
    }
    union operation all[6] = {operation(WRITE_32, p, 3, 0), operation(WAIT_32, p, 3, EQ), operation(WRITE_64, p + 8, 5, 0),
                              operation(WAIT_64, p + 8, 4, GEQ)};
    CODE(cuStreamBatchMemOp_v2(stream, 4, all, 0));
    CODE(cuStreamBatchMemOp_v2(stream, 0, all, 0));
    CODE(cuStreamBatchMemOp_v2(stream, 0, NULL, 0));
    CODE(cuStreamBatchMemOp_v2(stream, 1, NULL, 0));
    CODE(cuStreamBatchMemOp_v2(stream, 1, all, 1));
    CODE(cuStreamBatchMemOp_v2(stream, 256, (union operation[256]){{0}}, 0));
    CODE(cuStreamBatchMemOp(stream, 1, all, 0));
    CODE(cuStreamBatchMemOp_v2((handle)2, 1, all, 0));
    NEED(cuCtxSynchronize());
    all[1] = operation(99, p, 0, 0);
    CODE(cuStreamBatchMemOp_v2(stream, 2, all, 0));
    all[1] = operation(WRITE_32, p + 1, 0, 0);
    CODE(cuStreamBatchMemOp_v2(stream, 2, all, 0));
    all[1] = operation(WRITE_32, 64, 0, 0);
    CODE(cuStreamBatchMemOp_v2(stream, 2, all, 0));
    all[1] = operation(WAIT_32, p, 3, 9);
    CODE(cuStreamBatchMemOp_v2(stream, 2, all, 0));
    all[0] = operation(FLUSH_WRITES, 0, 0, 0);
    CODE(cuStreamBatchMemOp_v2(stream, 1, all, 0));
    all[0] = operation(BARRIER, 0, 0, 0);
    NAMED("barrier of the system", cuStreamBatchMemOp_v2(stream, 1, all, 0));
    all[0].other.flags = 1;
    NAMED("barrier of the device", cuStreamBatchMemOp_v2(stream, 1, all, 0));
    all[0].other.flags = 2;
    NAMED("barrier of nothing", cuStreamBatchMemOp_v2(stream, 1, all, 0));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemcpyDtoH_v2(back, p, 16));
    value("first", back[0]);
    value("second", back[2]);
}

void interprocess(void) {
    handle event = NULL, plain = NULL, found = NULL;
    address p = 0, pool = 0, managed = 0, opened = 0;
    void *pinned = NULL;
    struct shared shared, same, zeros;
    begin();
    memset(&zeros, 0, sizeof zeros);
    memset(&shared, 0, sizeof shared);
    NEED(cuMemAlloc_v2(&p, 4096));
    NEED(cuMemAllocManaged(&managed, 4096, 1));
    NEED(cuMemAllocAsync(&pool, 4096, NULL));
    NEED(cuMemHostAlloc(&pinned, 4096, 0));
    NEED(cuEventCreate(&event, 6));
    NEED(cuEventCreate(&plain, 2));
    CODE(cuIpcGetMemHandle(&shared, p));
    CODE(cuIpcGetMemHandle(&same, p));
    value("the same handle", !memcmp(&shared, &same, sizeof shared));
    CODE(cuIpcGetMemHandle(&same, p + 256));
    CODE(cuIpcGetMemHandle(NULL, p));
    CODE(cuIpcGetMemHandle(&same, 0));
    CODE(cuIpcGetMemHandle(&same, 64));
    CODE(cuIpcGetMemHandle(&same, pool));
    CODE(cuIpcGetMemHandle(&same, managed));
    CODE(cuIpcGetMemHandle(&same, (address)(size_t)pinned));
    NAMED("open in the process that has it", cuIpcOpenMemHandle_v2(&opened, shared, 1));
    CODE(cuIpcOpenMemHandle_v2(&opened, shared, 0));
    CODE(cuIpcOpenMemHandle_v2(&opened, shared, 2));
    CODE(cuIpcOpenMemHandle_v2(NULL, shared, 1));
    CODE(cuIpcOpenMemHandle_v2(&opened, zeros, 1));
    CODE(cuIpcCloseMemHandle(p));
    CODE(cuIpcCloseMemHandle(0));
    CODE(cuIpcCloseMemHandle(64));
    CODE(cuIpcGetEventHandle(&same, event));
    CODE(cuIpcGetEventHandle(&same, plain));
    CODE(cuIpcGetEventHandle(NULL, event));
    CODE(cuIpcGetEventHandle(&same, NULL));
    CODE(cuIpcGetEventHandle(&same, (handle)16));
    CODE(cuIpcOpenEventHandle(NULL, zeros));
    CODE(cuIpcOpenEventHandle(&found, zeros));
    NEED(cuIpcGetEventHandle(&same, event));
    NAMED("open an event in the process that has it", cuIpcOpenEventHandle(&found, same));
    CODE(cuEventDestroy_v2(event));
    CODE(cuMemFree_v2(p));
    CODE(cuIpcGetMemHandle(&same, p));
}
