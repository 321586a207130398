/* Values that streams write to memory and wait for; the first argument says which case. */
#include "driver_api.h"
#include "values.h"

#include <pthread.h>

enum { N = 256 };

static handle function, a, b, c;
static address p, flags;
static unsigned back[N];

static union operation operation(int kind, address at, unsigned long long value, unsigned flags) {
    union operation made;
    memset(&made, 0, sizeof made);
    made.value.kind = kind;
    made.value.at = at;
    made.value.value = value;
    made.value.flags = flags;
    return made;
}

/* Work of one stream goes on where that of another one stopped. */
static void order(void) {
    OK(cuStreamWaitValue32_v2(b, flags, 1, EQ));
    OK(launch(function, p, N, b));
    OK(cuStreamWriteValue64_v2(b, flags + 8, 2, 0));
    OK(cuStreamWaitValue64_v2(c, flags + 8, 2, GEQ));
    OK(launch(function, p, N, c));
    OK(cuMemsetD32Async(p, 5, N, a));
    OK(cuStreamWriteValue32_v2(a, flags, 1, 0));
    OK(cuStreamSynchronize(c));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 7 && back[N - 1] == 7);
    /* What the host learns from c it learns of a and b: the memory can be freed. */
    OK(cuMemFree_v2(p));
}

/* Three streams that need each other in turn. */
static void crossed(void) {
    for (int round = 1; round < 5; round++) {
        OK(cuStreamWaitValue32_v2(a, flags, round, GEQ));
        OK(cuStreamWriteValue32_v2(a, flags + 8, round, 0));
        OK(cuStreamWaitValue32_v2(b, flags + 4, round, GEQ));
        OK(cuStreamWriteValue32_v2(c, flags, round, 0));
        OK(cuStreamWaitValue32_v2(c, flags + 8, round, GEQ));
        OK(cuStreamWriteValue32_v2(c, flags + 4, round, 0));
    }
    OK(cuStreamSynchronize(b));
    OK(cuCtxSynchronize());
}

static void comparisons(void) {
    unsigned long long words[2];
    OK(cuStreamWriteValue32_v2(a, flags, 7, 0));
    OK(cuStreamWaitValue32_v2(a, flags, 7, EQ));
    OK(cuStreamWaitValue32_v2(a, flags, 7, GEQ));
    OK(cuStreamWaitValue32_v2(a, flags, 0x80000010, GEQ));
    OK(cuStreamWaitValue32_v2(a, flags, 2, AND));
    OK(cuStreamWaitValue32_v2(a, flags, 8, NOR));
    OK(cuStreamWriteValue64_v2(a, flags + 8, 0x100000007, 0));
    OK(cuStreamWaitValue64_v2(a, flags + 8, 0x100000007, EQ));
    OK(cuStreamWaitValue64_v2(a, flags + 8, 0x100000000, AND));
    OK(cuStreamWaitValue64_v2(a, flags + 8, 0, NOR));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH_v2(words, flags, sizeof words));
    TRUE((unsigned)words[0] == 7 && words[1] == 0x100000007);
    /* It waits as long as the value is another one. */
    OK(cuStreamWaitValue32_v2(b, flags, 9, EQ));
    WANT(600, cuStreamQuery(b));
    OK(cuStreamWriteValue32_v2(a, flags, 9, 0));
    OK(cuStreamSynchronize(b));
    OK(cuStreamQuery(b));
}

static void batch(void) {
    union operation all[255];
    for (int i = 0; i < 255; i++) all[i] = operation(WRITE_32, flags, i, 0);
    all[100] = operation(WAIT_32, flags, 99, EQ);
    all[101].kind = BARRIER;
    all[101].other.flags = 1;
    all[102] = operation(WRITE_64, flags + 8, 3, 0);
    all[103] = operation(WAIT_64, flags + 8, 3, EQ);
    OK(cuStreamBatchMemOp_v2(a, 255, all, 0));
    OK(cuStreamBatchMemOp_v2(a, 0, NULL, 0));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH_v2(back, flags, 16));
    TRUE(back[0] == 254 && back[2] == 3);
    /* One that is wrong: none of them is done. */
    all[1] = operation(WRITE_32, flags + 1, 0, 0);
    WANT(1, cuStreamBatchMemOp_v2(a, 2, all, 0));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH_v2(back, flags, 4));
    TRUE(back[0] == 254);
    WANT(1, cuStreamBatchMemOp_v2(a, 1, NULL, 0));
    WANT(1, cuStreamBatchMemOp_v2(a, 1, all, 1));
    WANT(1, cuStreamBatchMemOp_v2(a, 256, all, 0));
    all[0] = operation(99, flags, 0, 0);
    WANT(1, cuStreamBatchMemOp_v2(a, 1, all, 0));
    all[0] = operation(FLUSH_WRITES, 0, 0, 0);
    WANT(801, cuStreamBatchMemOp_v2(a, 1, all, 0));
    WANT(801, cuStreamBatchMemOp(a, 1, all, 0));
}

/* A thread of the host writes what a stream waits for. */
static void *writes(void *flag) {
    usleep(100000);
    __atomic_store_n((unsigned *)flag, 3, __ATOMIC_RELEASE);
    return NULL;
}

static void by_the_host(void) {
    pthread_t thread;
    void *pinned;
    OK(cuMemHostAlloc(&pinned, 64, 0));
    OK(cuMemsetD32Async(p, 1, N, a));
    OK(cuStreamWaitValue32_v2(b, (address)(size_t)pinned, 3, EQ));
    OK(launch(function, p, N, b));
    OK(cuStreamSynchronize(a));
    /* What the host knew when it wrote the flag, the stream knows after it. */
    TRUE(pthread_create(&thread, NULL, writes, pinned) == 0);
    OK(cuStreamSynchronize(b));
    pthread_join(thread, NULL);
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 2);
    /* And the host reads what a stream wrote. */
    OK(cuStreamWriteValue32_v2(a, (address)(size_t)pinned, 4, 0));
    OK(cuStreamSynchronize(a));
    TRUE(*(unsigned *)pinned == 4);
}

static void captured(void) {
    handle graph, exec, nodes[4];
    size_t count = 4;
    int kind;
    OK(cuStreamBeginCapture_v2(a, 0));
    OK(cuStreamWaitValue32_v2(a, flags, 1, EQ));
    OK(launch(function, p, N, a));
    OK(cuStreamWriteValue32_v2(a, flags, 0, 0));
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphGetNodes(graph, nodes, &count));
    TRUE(count == 3);
    int cuGraphNodeGetType(handle node, int *kind);
    OK(cuGraphNodeGetType(nodes[0], &kind));
    TRUE(kind == 12);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemsetD32Async(p, 0, N, b));
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch(exec, a));
        OK(cuStreamWriteValue32_v2(b, flags, 1, 0));
        OK(cuStreamWaitValue32_v2(b, flags, 0, EQ));
    }
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 3);
}

static void refuses(void) {
    handle gone, other, context;
    address freed;
    OK(cuMemAlloc_v2(&freed, 64));
    OK(cuMemFree_v2(freed));
    OK(cuStreamCreate(&gone, 1));
    OK(cuStreamDestroy_v2(gone));
    WANT(400, cuStreamWriteValue32_v2(gone, flags, 1, 0));
    WANT(400, cuStreamWaitValue32_v2(gone, flags, 1, 0));
    WANT(400, cuStreamWaitValue64_v2((handle)0xdead0, flags, 1, 0));
    WANT(1, cuStreamWriteValue32_v2(a, flags, 1, 1));
    WANT(1, cuStreamWriteValue64_v2(a, flags, 1, 2));
    WANT(1, cuStreamWaitValue32_v2(a, flags, 1, 4));
    WANT(801, cuStreamWaitValue32_v2(a, flags, 1, EQ | FLUSH));
    WANT(1, cuStreamWriteValue32_v2(a, flags + 2, 1, 0));
    WANT(1, cuStreamWaitValue64_v2(a, flags + 4, 1, 0));
    WANT(1, cuStreamWriteValue32_v2(a, 0, 1, 0));
    WANT(1, cuStreamWriteValue32_v2(a, 64, 1, 0));
    WANT(1, cuStreamWaitValue32_v2(a, freed, 1, 0));
    WANT(801, cuStreamWriteValue32(a, flags, 1, 0));
    WANT(801, cuStreamWaitValue32(a, flags, 1, 0));
    WANT(801, cuStreamWriteValue64(a, flags, 1, 0));
    WANT(801, cuStreamWaitValue64(a, flags, 1, 0));
    /* A stream of another context than the current one works; no context does not. */
    OK(cuCtxGetCurrent(&context));
    OK(cuCtxSetCurrent(NULL));
    WANT(201, cuStreamWriteValue32_v2(NULL, flags, 1, 0));
    OK(cuStreamWriteValue32_v2(a, flags, 2, 0));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamWriteValue32_v2(a, flags, 3, 0));
    OK(cuStreamWaitValue32_v2(a, flags, 3, EQ));
    OK(cuCtxSetCurrent(context));
    OK(cuCtxDestroy_v2(other));
    OK(cuStreamSynchronize(a));
}

int main(int count, char **which) {
    const char *name = count > 1 ? which[1] : "";
    begin();
    function = add_one();
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(cuMemAlloc_v2(&flags, 64));
    OK(cuMemsetD8_v2(flags, 0, 64));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&a, 1));
    OK(cuStreamCreate(&b, 1));
    OK(cuStreamCreate(&c, 1));
    if (!strcmp(name, "order")) order();
    else if (!strcmp(name, "crossed")) crossed();
    else if (!strcmp(name, "comparisons")) comparisons();
    else if (!strcmp(name, "batch")) batch();
    else if (!strcmp(name, "by the host")) by_the_host();
    else if (!strcmp(name, "captured")) captured();
    else if (!strcmp(name, "refuses")) refuses();
    else if (!strcmp(name, "too early")) {
        /* The value is written before the work that it stands for. */
        OK(cuStreamWriteValue32_v2(a, flags, 1, 0));
        OK(cuMemsetD32Async(p, 5, N, a));
        OK(cuStreamWaitValue32_v2(b, flags, 1, EQ));
        OK(launch(function, p, N, b));
        OK(cuCtxSynchronize());
    } else if (!strcmp(name, "not waited for")) {
        OK(cuMemsetD32Async(p, 5, N, a));
        OK(cuStreamWriteValue32_v2(a, flags, 1, 0));
        OK(launch(function, p, N, b));
        OK(cuCtxSynchronize());
    } else if (!strcmp(name, "endless")) {
        OK(cuStreamWaitValue32_v2(a, flags, 5, GEQ));
        WANT(702, cuStreamSynchronize(a));
    } else if (!strcmp(name, "each other")) {
        OK(cuStreamWaitValue32_v2(a, flags, 1, EQ));
        OK(cuStreamWriteValue32_v2(a, flags + 4, 1, 0));
        OK(cuStreamWaitValue32_v2(b, flags + 4, 1, EQ));
        OK(cuStreamWriteValue32_v2(b, flags, 1, 0));
        WANT(702, cuCtxSynchronize());
    } else if (!strcmp(name, "never written")) {
        OK(cuStreamWaitValue32_v2(a, p, 0, GEQ));
        OK(cuStreamSynchronize(a));
    }
    return 0;
}
