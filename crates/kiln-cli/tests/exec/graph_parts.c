/* Nodes of graphs for events, memory and values, children and objects; the first argument says which case. */
#include "driver_api.h"
#include "values.h"
#include "graph_parts.h"

#include <pthread.h>

enum { N = 256 };

struct kernel {
    handle function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
};
struct fill {
    address to;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
struct end {
    size_t x, y, z, level;
    int kind;
    const void *host;
    address device;
    void *array, *context;
    size_t pitch, height;
};
struct copy {
    struct end from, to;
    size_t width, height, depth;
};
struct any {
    int kind, reserved[3];
    union {
        struct graph_memory memory;
        struct batch batch;
        address start;
        handle event;
        long long room[29];
    };
    long long rest;
};
int cuGraphAddKernelNode(handle *node, handle graph, const handle *after, size_t count, const struct kernel *kernel);
int cuGraphAddMemsetNode(handle *node, handle graph, const handle *after, size_t count, const struct fill *fill, handle context);
int cuGraphAddMemcpyNode(handle *node, handle graph, const handle *after, size_t count, const struct copy *copy, handle context);
int cuGraphAddNode(handle *node, handle graph, const handle *after, size_t count, struct any *any);
int cuGraphRemoveDependencies(handle graph, const handle *from, const handle *to, size_t count);
int cuGraphNodeSetEnabled(handle exec, handle node, unsigned enabled);

static handle function, stream, other, context;
static address p;
static unsigned back[N];

static handle add(handle graph, handle after, address *at, unsigned *n) {
    void *parameters[] = {at, n};
    struct kernel kernel = {function, {(*n + 63) / 64, 1, 1}, {64, 1, 1}, 0, parameters, NULL};
    handle node;
    OK(cuGraphAddKernelNode(&node, graph, &after, after != NULL, &kernel));
    return node;
}

static handle fill(handle graph, handle after, address at, unsigned value) {
    struct fill fill = {at, 0, value, 4, N, 1};
    handle node;
    OK(cuGraphAddMemsetNode(&node, graph, &after, after != NULL, &fill, NULL));
    return node;
}

/* A stream goes on where a graph records, and the graph where a stream records. */
static void events(void) {
    handle graph, exec, begun, middle, node, wait, found;
    unsigned n = N;
    int kind;
    OK(cuEventCreate(&begun, 0));
    OK(cuEventCreate(&middle, 2));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, begun));
    handle kernel = add(graph, wait, &p, &n);
    OK(cuGraphAddEventRecordNode(&node, graph, &kernel, 1, begun));
    OK(cuGraphEventRecordNodeSetEvent(node, middle));
    OK(cuGraphEventRecordNodeGetEvent(node, &found));
    TRUE(found == middle);
    OK(cuGraphEventWaitNodeGetEvent(wait, &found));
    TRUE(found == begun);
    OK(cuGraphNodeGetType(wait, &kind));
    TRUE(kind == 6);
    OK(cuGraphNodeGetType(node, &kind));
    TRUE(kind == 7);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    WANT(1, cuGraphNodeSetEnabled(exec, node, 0));
    for (unsigned round = 0; round < 3; round++) {
        OK(cuMemsetD32Async(p, 10 * round, N, other));
        OK(cuEventRecord(begun, other));
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamWaitEvent(other, middle, 0));
        OK(launch(function, p, N, other));
        OK(cuEventSynchronize(middle));
        OK(cuStreamSynchronize(other));
        OK(cuMemcpyDtoH_v2(back, p, sizeof back));
        TRUE(back[0] == 10 * round + 2 && back[N - 1] == back[0]);
    }
    /* Another event for later launches. */
    handle last;
    OK(cuEventCreate(&last, 2));
    OK(cuGraphExecEventRecordNodeSetEvent(exec, node, last));
    OK(cuGraphExecEventWaitNodeSetEvent(exec, wait, middle));
    OK(cuGraphLaunch(exec, stream));
    OK(cuEventSynchronize(last));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 23);
    WANT(1, cuGraphAddEventRecordNode(&found, graph, NULL, 0, NULL));
    WANT(1, cuGraphAddEventWaitNode(&found, graph, NULL, 0, (handle)16));
    WANT(1, cuGraphEventRecordNodeGetEvent(wait, &found));
    WANT(1, cuGraphEventWaitNodeSetEvent(node, last));
    WANT(1, cuGraphExecEventWaitNodeSetEvent(exec, node, last));
    /* An event that is gone, and a graph that is. */
    OK(cuEventDestroy_v2(last));
    WANT(400, cuGraphLaunch(exec, stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    WANT(1, cuGraphEventRecordNodeGetEvent(node, &found));
}

/* Branches side by side, which meet again. */
static void branches(void) {
    handle graph, exec, event, record, empty, ends[3];
    address parts[3] = {p, p + 4 * N, p + 8 * N};
    unsigned n = N;
    OK(cuEventCreate(&event, 2));
    OK(cuGraphCreate(&graph, 0));
    handle first = fill(graph, NULL, p + 12 * N, 1);
    for (int i = 0; i < 3; i++) ends[i] = add(graph, fill(graph, first, parts[i], i), &parts[i], &n);
    OK(cuGraphAddEmptyNode(&empty, graph, ends, 3));
    OK(cuGraphAddEventRecordNode(&record, graph, &empty, 1, event));
    n = 3 * N;
    add(graph, record, &p, &n);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, other));
    OK(cuStreamSynchronize(other));
    for (int i = 0; i < 3; i++) {
        OK(cuMemcpyDtoH_v2(back, parts[i], sizeof back));
        TRUE(back[0] == i + 2u && back[N - 1] == i + 2u);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(stream));
}

static void memory(void) {
    handle graph, exec, again, node, free_node, wrong, clone;
    struct graph_memory memory = {.kind = 1, .location_kind = 1, .bytes = 4 * N}, is;
    unsigned n = N;
    address found;
    unsigned long long bytes;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
    TRUE(memory.start != 0);
    handle kernel = add(graph, fill(graph, node, memory.start, 7), &memory.start, &n);
    struct copy copy = {.width = sizeof back, .height = 1, .depth = 1};
    copy.from.kind = 2;
    copy.from.device = memory.start;
    copy.to.kind = 1;
    copy.to.host = back;
    handle down;
    OK(cuGraphAddMemcpyNode(&down, graph, &kernel, 1, &copy, NULL));
    OK(cuGraphAddMemFreeNode(&free_node, graph, &down, 1, memory.start));
    WANT(1, cuGraphAddMemFreeNode(&wrong, graph, &down, 1, memory.start));
    WANT(1, cuGraphAddMemFreeNode(&wrong, graph, NULL, 0, p));
    OK(cuGraphMemAllocNodeGetParams(node, &is));
    TRUE(is.start == memory.start && is.bytes == 4 * N && is.kind == 1);
    OK(cuGraphMemFreeNodeGetParams(free_node, &found));
    TRUE(found == memory.start);
    WANT(1, cuGraphMemAllocNodeGetParams(kernel, &is));
    WANT(801, cuGraphClone(&clone, graph));
    WANT(801, cuGraphDestroyNode(node));
    WANT(801, cuGraphRemoveDependencies(graph, &kernel, &down, 1));
    /* Before a launch nothing is there. */
    WANT(1, cuMemsetD32_v2(memory.start, 0, 1));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    WANT(801, cuGraphInstantiateWithFlags(&again, graph, 0));
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        TRUE(back[0] == 8 && back[N - 1] == 8);
        back[0] = 0;
    }
    WANT(1, cuMemFree_v2(memory.start));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuCtxSynchronize());
    OK(cuDeviceGetGraphMemAttribute(0, 0, &bytes));
    TRUE(bytes == 0);
    OK(cuDeviceGetGraphMemAttribute(0, 2, &bytes));
    TRUE(bytes == 0);
    WANT(1, cuDeviceGetGraphMemAttribute(0, 9, &bytes));
    WANT(101, cuDeviceGetGraphMemAttribute(9, 0, &bytes));
    WANT(1, cuDeviceSetGraphMemAttribute(0, 0, &bytes));
    OK(cuDeviceSetGraphMemAttribute(0, 1, &bytes));
    OK(cuDeviceGraphMemTrim(0));
    WANT(101, cuDeviceGraphMemTrim(9));
}

/* Memory that outlives its graph's launch. */
static void kept(void) {
    handle graph, exec;
    struct any any = {.kind = 10};
    any.memory = (struct graph_memory){.kind = 1, .location_kind = 1, .bytes = 4 * N};
    handle node;
    unsigned long long used;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddNode(&node, graph, NULL, 0, &any));
    address start = any.memory.start;
    TRUE(start != 0);
    fill(graph, node, start, 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(launch(function, start, N, stream));
    OK(cuMemcpyDtoHAsync_v2(back, start, sizeof back, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(back[0] == 4 && back[N - 1] == 4);
    OK(cuDeviceGetGraphMemAttribute(0, 0, &used));
    TRUE(used > 0);
    WANT(1, cuGraphLaunch(exec, stream));
    OK(cuMemFreeAsync(start, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree_v2(start));
    WANT(1, cuMemFree_v2(start));
    OK(cuGraphExecDestroy(exec));
    /* Freed by the next launch. */
    OK(cuGraphInstantiateWithFlags(&exec, graph, 1));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    any.memory.bytes = 0;
    WANT(1, cuGraphAddNode(&node, graph, NULL, 0, &any));
    any.memory = (struct graph_memory){.kind = 1, .location_kind = 1, .location = 9, .bytes = 4};
    WANT(1, cuGraphAddNode(&node, graph, NULL, 0, &any));
    any.memory = (struct graph_memory){.kind = 1, .location_kind = 1, .handle_types = 1, .bytes = 4};
    WANT(801, cuGraphAddNode(&node, graph, NULL, 0, &any));
}

/* Allocations in the order of a stream become nodes when they are captured. */
static void captured(void) {
    handle graph, exec, outer, whole, nodes[8];
    address start;
    size_t count = 8;
    int kind;
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuMemAllocAsync(&start, 4 * N, stream));
    OK(cuMemsetD32Async(start, 1, N, stream));
    OK(launch(function, start, N, stream));
    OK(cuMemcpyDtoDAsync_v2(p, start, 4 * N, stream));
    OK(cuMemFreeAsync(start, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, nodes, &count));
    TRUE(count == 5);
    OK(cuGraphNodeGetType(nodes[0], &kind));
    TRUE(kind == 10);
    OK(cuGraphNodeGetType(nodes[4], &kind));
    TRUE(kind == 11);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 2 && back[N - 1] == 2);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    /* Events from outside of a capture are nodes of it. */
    handle begun, done;
    OK(cuEventCreate(&begun, 2));
    OK(cuEventCreate(&done, 2));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuStreamWaitEvent(stream, begun, 1));
    OK(launch(function, p, N, stream));
    OK(cuEventRecordWithFlags(done, stream, 1));
    OK(cuStreamEndCapture(stream, &graph));
    count = 8;
    OK(cuGraphGetNodes(graph, nodes, &count));
    TRUE(count == 3);
    OK(cuGraphNodeGetType(nodes[2], &kind));
    TRUE(kind == 7);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemsetD32Async(p, 2, N, other));
    OK(cuEventRecord(begun, other));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamWaitEvent(other, done, 0));
    OK(cuMemsetD32Async(p, 2, N, other));
    OK(cuStreamSynchronize(other));
    OK(cuGraphExecDestroy(exec));
    /* A launch that is captured becomes a child. */
    OK(cuGraphCreate(&graph, 0));
    unsigned n = N;
    add(graph, NULL, &p, &n);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamEndCapture(stream, &outer));
    OK(cuGraphInstantiateWithFlags(&whole, outer, 0));
    OK(cuGraphLaunch(whole, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 4);
}

/* What a capture is asked, and where it goes. */
static void asked(void) {
    handle graph, found, exec, first, nodes[4];
    const handle *after = NULL;
    unsigned long long id = 0, other_id = 0;
    size_t count = 9;
    int status = 9;
    unsigned n = N;
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &found, &after, &count));
    /* Without a capture the status is told alone. */
    TRUE(status == 0 && count == 9);
    OK(cuMemsetD32_v2(p, 0, N));
    OK(cuCtxSynchronize());
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &found, &after, &count));
    TRUE(status == 1 && id != 0 && found != NULL && count == 0);
    OK(launch(function, p, N, stream));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &other_id, &graph, &after, &count));
    TRUE(graph == found && other_id == id && count == 1);
    first = after[0];
    /* A node that is added by hand, and taken into the capture. */
    handle by_hand = add(graph, first, &p, &n);
    WANT(1, cuStreamUpdateCaptureDependencies(stream, &by_hand, 1, 2));
    OK(cuStreamUpdateCaptureDependencies(stream, &by_hand, 1, 1));
    OK(launch(function, p, N, stream));
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(graph == found);
    WANT(401, cuStreamUpdateCaptureDependencies(stream, &by_hand, 1, 1));
    count = 4;
    OK(cuGraphGetNodes(graph, nodes, &count));
    TRUE(count == 3 && nodes[0] == first && nodes[1] == by_hand);
    /* A capture that goes into the same graph. */
    WANT(1, cuStreamBeginCaptureToGraph(stream, (handle)16, NULL, NULL, 0, 0));
    OK(cuStreamBeginCaptureToGraph(stream, graph, &nodes[2], NULL, 1, 0));
    OK(launch(function, p, N, stream));
    OK(cuStreamGetCaptureInfo(stream, &status, &other_id));
    TRUE(status == 1 && other_id != id);
    OK(cuStreamEndCapture(stream, &found));
    TRUE(found == graph);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 4);
    /* A capture that failed leaves no graph. */
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &found, NULL, NULL));
    WANT(900, cuStreamSynchronize(stream));
    WANT(901, cuStreamEndCapture(stream, &graph));
    TRUE(graph == NULL);
    WANT(1, cuGraphGetNodes(found, NULL, &count));
}

static void values(void) {
    handle graph, exec, node, wrong, empty;
    union operation all[2];
    struct batch batch = {context, 2, all, 0}, is = {0};
    unsigned n = N;
    memset(all, 0, sizeof all);
    all[0].value.kind = WAIT_32;
    all[0].value.at = p;
    all[0].value.value = 4;
    all[0].value.flags = EQ;
    all[1].value.kind = WRITE_32;
    all[1].value.at = p;
    all[1].value.value = 5;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
    add(graph, node, &p, &n);
    OK(cuGraphBatchMemOpNodeGetParams(node, &is));
    TRUE(is.context == context && is.count == 2 && is.operations[1].value.value == 5);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemsetD32Async(p, 0, N, other));
    OK(cuStreamSynchronize(other));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamWriteValue32_v2(other, p, 4, 0));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p, 8));
    TRUE(back[0] == 6 && back[1] == 1);
    all[0].value.value = 6;
    all[1].value.value = 9;
    OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &batch));
    OK(cuGraphBatchMemOpNodeSetParams(node, &batch));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 10);
    WANT(1, cuGraphExecBatchMemOpNodeSetParams(exec, empty, &batch));
    WANT(1, cuGraphBatchMemOpNodeGetParams(empty, &is));
    batch.context = NULL;
    WANT(1, cuGraphAddBatchMemOpNode(&wrong, graph, NULL, 0, &batch));
    batch.context = context;
    batch.flags = 1;
    WANT(1, cuGraphAddBatchMemOpNode(&wrong, graph, NULL, 0, &batch));
    batch.flags = 0;
    batch.count = 300;
    WANT(1, cuGraphAddBatchMemOpNode(&wrong, graph, NULL, 0, &batch));
    batch.count = 1;
    all[0].value.at = 64;
    WANT(1, cuGraphAddBatchMemOpNode(&wrong, graph, NULL, 0, &batch));
}

static void ended(void *data) {
    int device;
    ++*(int *)data;
    /* No call is permitted here. */
    TRUE(cuCtxGetDevice(&device) == 800);
}

/* A child as a graph of its own, objects that graphs keep, and the picture. */
static void children(void) {
    handle graph, child, inside, same, node, deep, exec, object, clone, nodes[4];
    size_t count = 4;
    int ends = 0;
    unsigned n = N;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    add(child, NULL, &p, &n);
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cuGraphChildGraphNodeGetGraph(node, &inside));
    OK(cuGraphChildGraphNodeGetGraph(node, &same));
    TRUE(inside == same && inside != child);
    OK(cuGraphGetNodes(inside, nodes, &count));
    TRUE(count == 1);
    /* What is changed inside is part of the graph around it. */
    add(inside, nodes[0], &p, &n);
    OK(cuMemsetD32_v2(p, 0, N));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    TRUE(back[0] == 2);
    OK(cuGraphExecDestroy(exec));
    WANT(1, cuGraphChildGraphNodeGetGraph(nodes[0], &deep));
    WANT(1, cuGraphChildGraphNodeGetGraph(node, NULL));
    OK(cuUserObjectCreate(&object, &ends, ended, 1, 1));
    OK(cuGraphRetainUserObject(graph, object, 1, 1));
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDebugDotPrint(graph, "/dev/stdout", 1));
    WANT(304, cuGraphDebugDotPrint(graph, "/proc/nothing/graph.dot", 0));
    WANT(1, cuGraphDebugDotPrint(graph, NULL, 0));
    OK(cuGraphDestroy(graph));
    WANT(1, cuGraphGetNodes(inside, NULL, &count));
    OK(cuGraphDestroy(clone));
    TRUE(ends == 0);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
    TRUE(ends == 1);
    WANT(1, cuUserObjectRelease(object, 1));
    WANT(1, cuUserObjectCreate(&object, &ends, NULL, 1, 1));
    WANT(1, cuUserObjectCreate(&object, &ends, ended, 1, 0));
    WANT(1, cuUserObjectCreate(&object, &ends, ended, 0, 1));
    OK(cuUserObjectCreate(&object, &ends, ended, 2, 1));
    WANT(1, cuUserObjectRetain(object, 0));
    WANT(1, cuGraphRetainUserObject(child, object, 1, 2));
    OK(cuGraphRetainUserObject(child, object, 3, 0));
    OK(cuGraphReleaseUserObject(child, object, 2));
    OK(cuUserObjectRelease(object, 2));
    TRUE(ends == 1);
    OK(cuGraphDestroy(child));
    TRUE(ends == 2);
}

int main(int count, char **which) {
    const char *name = count > 1 ? which[1] : "";
    context = begin();
    function = add_one();
    OK(cuMemAlloc_v2(&p, 16 * N));
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamCreate(&other, 1));
    if (!strcmp(name, "events")) events();
    else if (!strcmp(name, "branches")) branches();
    else if (!strcmp(name, "memory")) memory();
    else if (!strcmp(name, "kept")) kept();
    else if (!strcmp(name, "captured")) captured();
    else if (!strcmp(name, "values")) values();
    else if (!strcmp(name, "asked")) asked();
    else if (!strcmp(name, "children")) children();
    else {
        handle graph, exec, node, last;
        struct graph_memory memory = {.kind = 1, .location_kind = 1, .bytes = 4 * N};
        unsigned n = N;
        OK(cuGraphCreate(&graph, 0));
        OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
        if (!strcmp(name, "after the free")) {
            OK(cuGraphAddMemFreeNode(&last, graph, &node, 1, memory.start));
            add(graph, last, &memory.start, &n);
        }
        if (!strcmp(name, "without an edge")) {
            fill(graph, node, memory.start, 1);
            add(graph, node, &memory.start, &n);
        }
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuGraphLaunch(exec, stream));
        if (!strcmp(name, "not written")) {
            /* Each launch makes a new block. */
            OK(cuMemsetD32Async(memory.start, 1, N, stream));
            OK(cuMemFreeAsync(memory.start, stream));
            OK(cuGraphLaunch(exec, stream));
            OK(cuMemcpyDtoHAsync_v2(back, memory.start, sizeof back, stream));
        }
        cuStreamSynchronize(stream);
    }
    return 0;
}
