/* Graphs: a list of nodes that run in the order they were added. An executable is a copy of the list. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "fake.h"

#define NODES 512

struct Copy {
    size_t from_x[4]; int from_type; const char *from_host; Address from_device; void *from_array[2]; size_t from_pitch[2];
    size_t to_x[4]; int to_type; char *to_host; Address to_device; void *to_array[2]; size_t to_pitch[2];
    size_t width, height, depth;
};
struct Fill { Address to; size_t pitch; unsigned value, element; size_t width, height; };
struct Host { void (*function)(void *); void *data; };
struct Kernel { struct Function *function; struct Launch launch; void **parameters; void **extra; void *unused[2]; };

struct Node {
    enum { EMPTY, COPY, FILL, KERNEL, CHILD, HOST } kind;
    int index;
    struct Graph *graph;
    struct Copy copy;
    struct Fill fill;
    struct Host host;
    struct Function *function;
    struct Launch launch;
    unsigned char arguments[256];
    size_t size;
    int packed;
    struct Graph *child;
    int cooperative;
};

struct Graph { struct Node nodes[NODES]; int count; };

static struct Graph *clone(const struct Graph *graph) {
    struct Graph *copy = malloc(sizeof *copy);
    memcpy(copy, graph, sizeof *copy);
    for (int at = 0; at < copy->count; at++)
        if (copy->nodes[at].child) copy->nodes[at].child = clone(copy->nodes[at].child);
    return copy;
}

static void destroy(struct Graph *graph) {
    for (int at = 0; at < graph->count; at++)
        if (graph->nodes[at].child) destroy(graph->nodes[at].child);
    free(graph);
}

static struct Node *add(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges, int kind) {
    if (graph->count == NODES) return NULL;
    for (size_t at = 0; at < edges; at++) {
        if (after[at]->graph != graph) return NULL;
        for (size_t other = 0; other < at; other++)
            if (after[other] == after[at]) return NULL; /* as CUDA does */
    }
    *node = &graph->nodes[graph->count];
    (*node)->kind = kind;
    (*node)->index = graph->count++;
    (*node)->graph = graph;
    return *node;
}

static void set_kernel(struct Node *node, const struct Kernel *kernel) {
    node->function = kernel->function;
    node->launch = kernel->launch;
    node->packed = kernel->extra != NULL;
    node->size = arguments_of(kernel->extra, node->arguments, sizeof node->arguments);
    for (size_t at = 0; kernel->parameters && at < kernel->function->parameters; at++) {
        size_t offset = kernel->function->offsets[at], bytes = kernel->function->sizes[at];
        memcpy(node->arguments + offset, kernel->parameters[at], bytes);
        node->size = offset + bytes;
    }
}

static Status run(struct Graph *graph, struct Stream *stream) {
    for (int at = 0; at < graph->count; at++) {
        struct Node *node = &graph->nodes[at];
        Status status = SUCCESS;
        if (node->kind == COPY) {
            const void *from = node->copy.from_type == 1 ? (void *)node->copy.from_host : (void *)node->copy.from_device;
            void *to = node->copy.to_type == 1 ? (void *)node->copy.to_host : (void *)node->copy.to_device;
            memcpy(to, from, node->copy.width * node->copy.height * node->copy.depth);
        }
        if (node->kind == FILL) {
            char *to = (char *)node->fill.to;
            for (size_t item = 0; item < node->fill.width; item++, to += node->fill.element)
                memcpy(to, &node->fill.value, node->fill.element);
        }
        if (node->kind == KERNEL) {
            size_t size = node->size;
            void *extra[] = {(void *)1, node->arguments, (void *)2, &size, NULL};
            status = run_kernel(node->function, &node->launch, extra, stream);
        }
        if (node->kind == HOST && !fault_on_look()) node->host.function(node->host.data);
        if (node->kind == CHILD) status = run(node->child, stream);
        if (status) return status;
    }
    return SUCCESS;
}

Status cuGraphCreate(struct Graph **graph, unsigned flags) {
    ENTER_CONTEXT("%u", flags);
    *graph = calloc(1, sizeof **graph);
    return SUCCESS;
}

Status cuGraphDestroy(struct Graph *graph) {
    ENTER_CONTEXT("");
    destroy(graph);
    return SUCCESS;
}

Status cuGraphInstantiateWithFlags(struct Graph **executable, struct Graph *graph, unsigned long long flags) {
    ENTER_CONTEXT("%d %llu", graph->count, flags);
    *executable = clone(graph);
    return SUCCESS;
}

Status cuGraphExecDestroy(struct Graph *executable) {
    ENTER_CONTEXT("");
    destroy(executable);
    return SUCCESS;
}

Status cuGraphLaunch(struct Graph *executable, struct Stream *stream) {
    ENTER_CONTEXT("%d", executable->count);
    return run(executable, stream);
}

Status cuGraphAddEmptyNode(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges) {
    ENTER_CONTEXT("%zu", edges);
    return add(node, graph, after, edges, EMPTY) ? SUCCESS : INVALID_VALUE;
}

Status cuGraphAddMemcpyNode(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges,
                            const struct Copy *copy, uintptr_t context) {
    ENTER_CONTEXT("%zu %zu %lx", edges, copy->width, (unsigned long)context);
    if (!copy->width || copy->height != 1 || copy->depth != 1) return INVALID_VALUE;
    struct Node *added = add(node, graph, after, edges, COPY);
    if (added) added->copy = *copy;
    return added ? SUCCESS : INVALID_VALUE;
}

Status cuGraphAddMemsetNode(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges,
                            const struct Fill *fill, uintptr_t context) {
    ENTER_CONTEXT("%zu %zu %lx", edges, fill->width, (unsigned long)context);
    struct Node *added = add(node, graph, after, edges, FILL);
    if (added) added->fill = *fill;
    return added ? SUCCESS : INVALID_VALUE;
}

Status cuGraphAddKernelNode_v2(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges,
                               const struct Kernel *kernel) {
    ENTER_CONTEXT("%zu %s", edges, kernel->function->name);
    struct Node *added = add(node, graph, after, edges, KERNEL);
    if (added) set_kernel(added, kernel);
    return added ? SUCCESS : INVALID_VALUE;
}

Status cuGraphAddChildGraphNode(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges,
                                struct Graph *child) {
    ENTER_CONTEXT("%zu %d", edges, child->count);
    struct Node *added = add(node, graph, after, edges, CHILD);
    if (added) added->child = clone(child);
    return added ? SUCCESS : INVALID_VALUE;
}

Status cuGraphAddHostNode(struct Node **node, struct Graph *graph, struct Node *const *after, size_t edges, const struct Host *host) {
    ENTER_CONTEXT("%zu", edges);
    struct Node *added = add(node, graph, after, edges, HOST);
    if (added) added->host = *host;
    return added ? SUCCESS : INVALID_VALUE;
}

Status cuGraphHostNodeSetParams(struct Node *node, const struct Host *host) {
    ENTER_CONTEXT("");
    node->host = *host;
    return SUCCESS;
}

Status cuGraphExecHostNodeSetParams(struct Graph *executable, struct Node *node, const struct Host *host) {
    ENTER_CONTEXT("");
    executable->nodes[node->index].host = *host;
    return SUCCESS;
}

Status cuGraphKernelNodeSetAttribute(struct Node *node, unsigned attribute, const int *value) {
    ENTER_CONTEXT("%u %d", attribute, *value);
    if (attribute == 2 && node->packed) return INVALID_VALUE;
    if (attribute == 2) node->cooperative = *value;
    return SUCCESS;
}

Status cuGraphMemcpyNodeSetParams(struct Node *node, const struct Copy *copy) {
    ENTER_CONTEXT("%zu", copy->width);
    node->copy = *copy;
    return SUCCESS;
}

Status cuGraphMemsetNodeSetParams(struct Node *node, const struct Fill *fill) {
    ENTER_CONTEXT("%zu", fill->width);
    node->fill = *fill;
    return SUCCESS;
}

Status cuGraphKernelNodeSetParams_v2(struct Node *node, const struct Kernel *kernel) {
    ENTER_CONTEXT("%s", kernel->function->name);
    set_kernel(node, kernel);
    return SUCCESS;
}

Status cuGraphExecMemcpyNodeSetParams(struct Graph *executable, struct Node *node, const struct Copy *copy,
                                      uintptr_t context) {
    ENTER_CONTEXT("%zu %lx", copy->width, (unsigned long)context);
    executable->nodes[node->index].copy = *copy;
    return SUCCESS;
}

Status cuGraphExecMemsetNodeSetParams(struct Graph *executable, struct Node *node, const struct Fill *fill,
                                      uintptr_t context) {
    ENTER_CONTEXT("%zu %lx", fill->width, (unsigned long)context);
    executable->nodes[node->index].fill = *fill;
    return SUCCESS;
}

Status cuGraphExecKernelNodeSetParams_v2(struct Graph *executable, struct Node *node, const struct Kernel *kernel) {
    ENTER_CONTEXT("%s", kernel->function->name);
    set_kernel(&executable->nodes[node->index], kernel);
    return SUCCESS;
}

Status cuGraphExecChildGraphNodeSetParams(struct Graph *executable, struct Node *node, struct Graph *child) {
    ENTER_CONTEXT("%d", child->count);
    struct Node *place = &executable->nodes[node->index];
    if (place->child->count != child->count) return INVALID_VALUE;
    destroy(place->child);
    place->child = clone(child);
    return SUCCESS;
}
