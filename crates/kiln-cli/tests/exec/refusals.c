/* Arguments that are refused, with the codes that cuda.h names and an H200 answers. */
#include "driver_api.h"

int cuGraphAddNode(handle *node, handle graph, const handle *after, size_t count, void *parameters);
int cuGraphAddNode_v2(handle *node, handle graph, const handle *after, const void *data, size_t count, void *parameters);
int cuMemAdvise(address start, size_t bytes, int advice, int device);
int cuMemPoolSetAccess(handle pool, const void *access, size_t count);

struct configuration {
    unsigned grid[3], block[3], shared;
    handle stream;
    const void *attributes;
    unsigned count;
};

int main(void) {
    handle graph, node, pool, event, stream, context, first, function;
    unsigned long long parameters[32] = {5 /* an empty node */}, attribute[9] = {9999};
    char page[4096];
    address managed, p;
    unsigned n = 64;
    void *arguments[] = {&p, &n};
    struct configuration configuration = {{1, 1, 1}, {64, 1, 1}, 0, NULL, attribute, 1};
    first = begin();
    function = add_one();
    (void)launch;

    /* Dependencies are not read for a graph that is none, nor more than the graph has nodes. */
    OK(cuGraphCreate(&graph, 0));
    WANT(1, cuGraphAddNode_v2(NULL, graph, (handle *)page, page, (size_t)1 << 60, parameters));
    WANT(1, cuGraphAddNode_v2(&node, (handle)page, (handle *)page, page, (size_t)1 << 60, parameters));
    WANT(1, cuGraphAddNode_v2(&node, graph, (handle *)page, page, (size_t)1 << 60, parameters));
    WANT(1, cuGraphAddNode(&node, graph, (handle *)page, (size_t)1 << 60, parameters));
    OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, parameters));
    OK(cuGraphAddNode_v2(&node, graph, &node, NULL, 1, parameters));

    OK(cuMemAllocManaged(&managed, 256, 1));
    OK(cuMemAdvise(managed, 256, 1, 0));
    OK(cuMemAdvise(managed, 256, 6, 0));
    WANT(1, cuMemAdvise(managed, 256, 0, 0));
    WANT(1, cuMemAdvise(managed, 256, 99, 0));

    /* A copy to nowhere is no read of bytes that were never written. */
    OK(cuMemAlloc_v2(&p, 256));
    WANT(1, cuMemcpyDtoH_v2(NULL, p, 4));
    WANT(1, cuMemcpyDtoHAsync_v2(NULL, p, 4, NULL));
    OK(cuMemsetD8_v2(p, 0, 256));
    WANT(1, cuLaunchKernelEx(&configuration, function, arguments, NULL));
    /* One of streams alone, a number between others, and one for launches. */
    attribute[0] = 3;
    WANT(1, cuLaunchKernelEx(&configuration, function, arguments, NULL));
    attribute[0] = 15;
    WANT(1, cuLaunchKernelEx(&configuration, function, arguments, NULL));
    attribute[0] = 16;
    OK(cuLaunchKernelEx(&configuration, function, arguments, NULL));
    configuration.count = 0;
    OK(cuLaunchKernelEx(&configuration, function, arguments, NULL));

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    WANT(1, cuMemPoolSetAccess(pool, NULL, 1));
    WANT(1, cuMemPoolSetAccess(pool, NULL, 0));

    /* An event and a stream of two contexts. */
    OK(cuEventCreate(&event, 0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuStreamCreate(&stream, 1));
    WANT(400, cuEventRecord(event, stream));
    WANT(400, cuEventRecord(event, NULL));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuCtxDestroy_v2(context));
    OK(cuCtxSetCurrent(first));
    OK(cuEventRecord(event, NULL));
    OK(cuCtxSynchronize());
    return 0;
}
