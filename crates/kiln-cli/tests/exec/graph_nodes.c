/* Graphs whose nodes are added by hand; the first argument says which case. */
#include "driver_api.h"

enum { N = 256 };

struct kernel {
    handle function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
};
struct kernel_2 {
    struct kernel first;
    handle kernel, context;
};
struct host {
    void (*function)(void *);
    void *data;
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
struct result {
    int result;
    handle node, from;
};
int cuGraphAddKernelNode(handle *node, handle graph, const handle *after, size_t count, const struct kernel *kernel);
int cuGraphAddKernelNode_v2(handle *node, handle graph, const handle *after, size_t count, const struct kernel_2 *kernel);
int cuGraphKernelNodeGetParams(handle node, struct kernel *kernel);
int cuGraphKernelNodeSetParams(handle node, const struct kernel *kernel);
int cuGraphExecKernelNodeSetParams(handle exec, handle node, const struct kernel *kernel);
int cuGraphAddMemcpyNode(handle *node, handle graph, const handle *after, size_t count, const struct copy *copy, handle context);
int cuGraphMemcpyNodeGetParams(handle node, struct copy *copy);
int cuGraphMemcpyNodeSetParams(handle node, const struct copy *copy);
int cuGraphExecMemcpyNodeSetParams(handle exec, handle node, const struct copy *copy, handle context);
int cuGraphAddMemsetNode(handle *node, handle graph, const handle *after, size_t count, const struct fill *fill, handle context);
int cuGraphMemsetNodeGetParams(handle node, struct fill *fill);
int cuGraphMemsetNodeSetParams(handle node, const struct fill *fill);
int cuGraphExecMemsetNodeSetParams(handle exec, handle node, const struct fill *fill, handle context);
int cuGraphAddHostNode(handle *node, handle graph, const handle *after, size_t count, const struct host *host);
int cuGraphHostNodeGetParams(handle node, struct host *host);
int cuGraphHostNodeSetParams(handle node, const struct host *host);
int cuGraphExecHostNodeSetParams(handle exec, handle node, const struct host *host);
int cuGraphAddEmptyNode(handle *node, handle graph, const handle *after, size_t count);
int cuGraphAddChildGraphNode(handle *node, handle graph, const handle *after, size_t count, handle child);
int cuGraphAddDependencies(handle graph, const handle *from, const handle *to, size_t count);
int cuGraphRemoveDependencies(handle graph, const handle *from, const handle *to, size_t count);
int cuGraphGetEdges(handle graph, handle *from, handle *to, size_t *count);
int cuGraphNodeGetDependencies(handle node, handle *nodes, size_t *count);
int cuGraphNodeGetDependentNodes(handle node, handle *nodes, size_t *count);
int cuGraphNodeGetType(handle node, int *kind);
int cuGraphNodeFindInClone(handle *node, handle original, handle clone);
int cuGraphDestroyNode(handle node);
int cuGraphInstantiate_v2(handle *exec, handle graph, handle *node, char *log, size_t room);
int cuGraphExecUpdate_v2(handle exec, handle graph, struct result *result);
int cuGraphNodeSetEnabled(handle exec, handle node, unsigned enabled);
int cuGraphNodeGetEnabled(handle exec, handle node, unsigned *enabled);

/* Any kind of node. */
struct any {
    int kind, reserved[3];
    union {
        struct kernel_2 kernel;
        struct {
            int flags, reserved;
            handle context;
            struct copy copy;
        } copy;
        struct {
            struct fill fill;
            handle context;
        } fill;
        struct host host;
        handle graph;
        long long room[29];
    };
    long long rest;
};
int cuGraphAddNode(handle *node, handle graph, const handle *after, size_t count, struct any *any);
int cuGraphNodeSetParams(handle node, struct any *any);
int cuGraphExecNodeSetParams(handle exec, handle node, struct any *any);
int cuGraphKernelNodeSetAttribute(handle node, int attribute, const unsigned *value);
int cuGraphKernelNodeGetAttribute(handle node, int attribute, unsigned *value);
int cuGraphKernelNodeCopyAttributes(handle to, handle from);

static unsigned words[N], back[N];
static int calls;
static handle function, stream;
static address p;

static void count(void *data) { calls += *(int *)data; }

static struct kernel add(address *at, unsigned *n) {
    static void *parameters[2];
    parameters[0] = at;
    parameters[1] = n;
    return (struct kernel){function, {(*n + 63) / 64, 1, 1}, {64, 1, 1}, 0, parameters, NULL};
}

static struct copy line(int to_kind, void *to, address to_device, int from_kind, const void *from, address from_device, size_t bytes) {
    struct copy copy = {.width = bytes, .height = 1, .depth = 1};
    copy.to.kind = to_kind;
    copy.to.host = to;
    copy.to.device = to_device;
    copy.from.kind = from_kind;
    copy.from.host = from;
    copy.from.device = from_device;
    return copy;
}

/* Words of the program go to the device, a kernel adds 1, they come back, and a function of the host is called. */
static void whole(void) {
    handle graph, exec, nodes[6], fill, up, kernel, down, host, clone, same;
    unsigned n = N, enabled = 9;
    int one = 1, ten = 10, kind = -1;
    size_t size = 6;
    struct fill zeros = {p, 0, 5, 4, N, 1}, is_fill;
    struct copy upload = line(2, NULL, p, 1, words, 0, sizeof words), download = line(1, back, 0, 2, NULL, p, sizeof back), is_copy;
    struct kernel add_one = add(&p, &n), is_kernel;
    struct host counts = {count, &one}, is_host;
    for (unsigned i = 0; i < N; i++) words[i] = i;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &zeros, NULL));
    OK(cuGraphAddMemcpyNode(&up, graph, &fill, 1, &upload, NULL));
    OK(cuGraphAddKernelNode(&kernel, graph, &up, 1, &add_one));
    OK(cuGraphAddMemcpyNode(&down, graph, &kernel, 1, &download, NULL));
    OK(cuGraphAddHostNode(&host, graph, &down, 1, &counts));
    OK(cuGraphGetNodes(graph, nodes, &size));
    TRUE(size == 5 && nodes[0] == fill && nodes[4] == host);
    OK(cuGraphNodeGetType(host, &kind));
    TRUE(kind == 3);
    OK(cuGraphNodeGetType(fill, &kind));
    TRUE(kind == 2);
    OK(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 1 && back[0] == 1 && back[N - 1] == N);
    /* Each launch reads the memory of the program again. */
    words[0] = 70;
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 2 && back[0] == 71);

    /* What the nodes are is told. */
    OK(cuGraphKernelNodeGetParams(kernel, &is_kernel));
    TRUE(is_kernel.function == function && is_kernel.grid[0] == 4 && is_kernel.block[0] == 64);
    TRUE(*(address *)is_kernel.parameters[0] == p && *(unsigned *)is_kernel.parameters[1] == N);
    OK(cuGraphMemsetNodeGetParams(fill, &is_fill));
    TRUE(is_fill.value == 5 && is_fill.width == N);
    OK(cuGraphMemcpyNodeGetParams(up, &is_copy));
    TRUE(is_copy.from.host == words && is_copy.width == sizeof words);
    OK(cuGraphHostNodeGetParams(host, &is_host));
    TRUE(is_host.function == count && is_host.data == &one);

    /* A change of the executable graph is for later launches; the graph keeps its nodes. */
    unsigned half = N / 2;
    struct kernel fewer = add(&p, &half);
    OK(cuGraphExecKernelNodeSetParams(exec, kernel, &fewer));
    counts.data = &ten;
    OK(cuGraphExecHostNodeSetParams(exec, host, &counts));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 12 && back[0] == 71 && back[N - 1] == N - 1);
    OK(cuGraphNodeSetEnabled(exec, kernel, 0));
    OK(cuGraphNodeGetEnabled(exec, kernel, &enabled));
    TRUE(enabled == 0);
    OK(cuGraphNodeSetEnabled(exec, up, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 22 && back[0] == 5 && back[9] == 5);
    zeros.value = 6;
    OK(cuGraphExecMemsetNodeSetParams(exec, fill, &zeros, NULL));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(back[0] == 6);

    /* A clone has nodes of its own; a change of it goes into the executable graph as a whole. */
    OK(cuGraphClone(&clone, graph));
    OK(cuGraphNodeFindInClone(&same, fill, clone));
    TRUE(same != fill);
    zeros.value = 8;
    OK(cuGraphMemsetNodeSetParams(same, &zeros));
    struct result result = {.result = 9};
    OK(cuGraphExecUpdate_v2(exec, clone, &result));
    TRUE(result.result == 0);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(back[0] == 8);
    OK(cuGraphDestroyNode(same));
    WANT(910, cuGraphExecUpdate_v2(exec, clone, &result));
    TRUE(result.result == 2);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(clone));
    OK(cuGraphDestroy(graph));
}

/* Edges by themselves, and an empty node where they meet; a child in the middle. */
static void edges(void) {
    handle graph, child, exec, a, b, meet, last, inner, from[8], to[8], list[8];
    unsigned n = N;
    size_t size = 8;
    struct fill one = {p, 0, 1, 4, N, 1}, two = {p + 4 * N, 0, 2, 4, N, 1};
    address q = p + 4 * N;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    struct kernel kernel = add(&q, &n);
    OK(cuGraphAddKernelNode_v2(&inner, child, NULL, 0, &(struct kernel_2){kernel, NULL, NULL}));
    OK(cuGraphAddMemsetNode(&a, graph, NULL, 0, &one, NULL));
    OK(cuGraphAddMemsetNode(&b, graph, NULL, 0, &two, NULL));
    OK(cuGraphAddEmptyNode(&meet, graph, NULL, 0));
    OK(cuGraphAddChildGraphNode(&last, graph, &meet, 1, child));
    handle starts[] = {a, b}, ends[] = {meet, meet};
    OK(cuGraphAddDependencies(graph, starts, ends, 2));
    OK(cuGraphGetEdges(graph, NULL, NULL, &size));
    TRUE(size == 3);
    OK(cuGraphGetEdges(graph, from, to, &size));
    TRUE(from[0] == a && to[0] == meet && from[2] == meet && to[2] == last);
    size = 8;
    OK(cuGraphNodeGetDependencies(meet, list, &size));
    TRUE(size == 2 && list[0] == a && list[1] == b);
    size = 8;
    OK(cuGraphNodeGetDependentNodes(a, list, &size));
    TRUE(size == 1 && list[0] == meet);
    /* A circle, an edge twice, one that is not there, and nodes of another graph. */
    WANT(1, cuGraphAddDependencies(graph, &last, &a, 1));
    WANT(1, cuGraphAddDependencies(graph, &a, &meet, 1));
    WANT(1, cuGraphAddDependencies(graph, &a, &a, 1));
    WANT(1, cuGraphAddDependencies(graph, &a, &inner, 1));
    WANT(1, cuGraphRemoveDependencies(graph, &a, &b, 1));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, q, sizeof back));
    TRUE(back[0] == 3 && back[N - 1] == 3);
    OK(cuGraphExecDestroy(exec));
    /* Without the edge the fill and the kernel are not ordered, which the other case finds. */
    OK(cuGraphRemoveDependencies(graph, &b, &meet, 1));
}

/* The same by one structure for all kinds. */
static void any_kind(void) {
    handle graph, exec, fill, kernel, down, host, other;
    unsigned n = N, value[16] = {1}, is[16] = {0};
    int one = 1;
    struct any any = {.kind = 2};
    OK(cuGraphCreate(&graph, 0));
    any.fill.fill = (struct fill){p, 0, 5, 4, N, 1};
    OK(cuGraphAddNode(&fill, graph, NULL, 0, &any));
    any = (struct any){.kind = 0};
    any.kernel = (struct kernel_2){add(&p, &n), NULL, NULL};
    OK(cuGraphAddNode(&kernel, graph, &fill, 1, &any));
    any = (struct any){.kind = 1};
    any.copy.copy = line(1, back, 0, 2, NULL, p, sizeof back);
    OK(cuGraphAddNode(&down, graph, &kernel, 1, &any));
    any = (struct any){.kind = 3};
    any.host = (struct host){count, &one};
    OK(cuGraphAddNode(&host, graph, &down, 1, &any));
    OK(cuGraphKernelNodeSetAttribute(kernel, 2, value));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 1 && back[0] == 6 && back[N - 1] == 6);
    any = (struct any){.kind = 2};
    any.fill.fill = (struct fill){p, 0, 50, 4, N, 1};
    OK(cuGraphExecNodeSetParams(exec, fill, &any));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 2 && back[0] == 51);
    OK(cuGraphNodeSetParams(fill, &any));
    WANT(1, cuGraphNodeSetParams(kernel, &any));
    /* Attributes stay when the parameters change. */
    struct kernel again = add(&p, &n);
    OK(cuGraphKernelNodeSetParams(kernel, &again));
    OK(cuGraphKernelNodeGetAttribute(kernel, 2, is));
    TRUE(is[0] == 1);
    OK(cuGraphAddKernelNode(&other, graph, NULL, 0, &again));
    OK(cuGraphKernelNodeCopyAttributes(other, kernel));
    is[0] = 0;
    OK(cuGraphKernelNodeGetAttribute(other, 2, is));
    TRUE(is[0] == 1);
    WANT(1, cuGraphKernelNodeGetAttribute(fill, 2, is));
    any.kind = 99;
    WANT(1, cuGraphAddNode(&other, graph, NULL, 0, &any));
}

static void refuses(void) {
    handle graph, other, node, foreign, exec;
    unsigned n = N;
    struct kernel kernel = add(&p, &n), wrong;
    struct fill fill = {p, 0, 1, 4, N, 1};
    struct copy copy = line(2, NULL, p, 1, words, 0, sizeof words);
    struct host host = {NULL, NULL};
    WANT(1, cuGraphCreate(&graph, 1));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&other, 0));
    OK(cuGraphAddEmptyNode(&foreign, other, NULL, 0));
    WANT(1, cuGraphAddEmptyNode(&node, graph, &foreign, 1));
    WANT(1, cuGraphAddEmptyNode(&node, graph, NULL, 1));
    WANT(1, cuGraphAddEmptyNode(NULL, graph, NULL, 0));
    WANT(1, cuGraphAddEmptyNode(&node, (handle)16, NULL, 0));
    WANT(1, cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    wrong = kernel;
    wrong.block[0] = 4096;
    WANT(1, cuGraphAddKernelNode(&node, graph, NULL, 0, &wrong));
    wrong = kernel;
    wrong.grid[1] = 0;
    WANT(1, cuGraphAddKernelNode(&node, graph, NULL, 0, &wrong));
    wrong = kernel;
    wrong.parameters = NULL;
    WANT(1, cuGraphAddKernelNode(&node, graph, NULL, 0, &wrong));
    wrong = kernel;
    wrong.function = (handle)16;
    WANT(400, cuGraphAddKernelNode(&node, graph, NULL, 0, &wrong));
    fill.element = 3;
    WANT(1, cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
    fill.element = 4;
    fill.to = 64;
    WANT(1, cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
    copy.to.device = 64;
    WANT(1, cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
    OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    WANT(1, cuGraphHostNodeGetParams(node, &host));
    fill.to = p;
    WANT(1, cuGraphMemsetNodeSetParams(node, &fill));
    WANT(1, cuGraphExecMemsetNodeSetParams(exec, node, &fill, NULL));
    WANT(1, cuGraphExecKernelNodeSetParams(exec, foreign, &kernel));
    WANT(1, cuGraphNodeFindInClone(&node, foreign, graph));
    OK(cuGraphDestroyNode(foreign));
    WANT(1, cuGraphDestroyNode(foreign));
    OK(cuGraphDestroy(graph));
    WANT(1, cuGraphDestroyNode(node));
}

int main(int count, char **which) {
    const char *name = count > 1 ? which[1] : "";
    begin();
    function = add_one();
    OK(cuMemAlloc_v2(&p, 16 * N));
    OK(cuStreamCreate(&stream, 1));
    if (!strcmp(name, "whole")) whole();
    else if (!strcmp(name, "edges")) edges();
    else if (!strcmp(name, "any kind")) any_kind();
    else if (!strcmp(name, "refuses")) refuses();
    else if (!strcmp(name, "unordered")) {
        handle graph, exec, a, b;
        unsigned n = N;
        struct fill fill = {p, 0, 1, 4, N, 1};
        struct kernel kernel = add(&p, &n);
        OK(cuGraphCreate(&graph, 0));
        OK(cuGraphAddMemsetNode(&a, graph, NULL, 0, &fill, NULL));
        OK(cuGraphAddKernelNode(&b, graph, NULL, 0, &kernel));
        OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
    }
    return 0;
}
