/* Graphs with conditional nodes, made by hand and by captures. The first argument says which. */
#include "driver_api.h"

#include "conditions.h"

static handle context, decide_kernel, down_kernel, add_kernel;
static address words;

static void start(void) {
    handle module;
    context = begin();
    OK(condition_module(&module));
    OK(cuModuleGetFunction(&decide_kernel, module, "decide"));
    OK(cuModuleGetFunction(&down_kernel, module, "count_down"));
    OK(cuModuleGetFunction(&add_kernel, module, "add"));
    OK(cuMemAlloc_v2(&words, 64));
    OK(cuMemsetD8_v2(words, 0, 64));
    OK(cuCtxSynchronize());
}

static unsigned word(unsigned index) {
    unsigned value;
    OK(cuMemcpyDtoH_v2(&value, words + 4 * index, 4));
    return value;
}

static handle kernel_of(handle graph, handle after, handle function, void *first, void *second) {
    void *parameters[] = {first, second};
    struct kernel_node given = {function, {1, 1, 1}, {1, 1, 1}, 0, parameters, NULL, NULL, NULL};
    handle node;
    OK(cuGraphAddKernelNode_v2(&node, graph, after ? &after : NULL, after != NULL, &given));
    return node;
}

static handle conditional(handle graph, handle after, condition of, int type, unsigned size, handle **bodies) {
    struct conditional given = {.kind = CONDITIONAL_NODE, .of = of, .type = type, .size = size, .context = context};
    handle node;
    OK(cuGraphAddNode(&node, graph, after ? &after : NULL, after != NULL, &given));
    *bodies = given.bodies;
    return node;
}

/* A counter is filled, a loop counts it down and adds, and a kernel behind it sees the sum. */
static void rounds(void) {
    handle graph, node, exec, stream, *bodies;
    condition of;
    unsigned more = 10, one = 1;
    start();
    address counter = words + 4, last = words + 8;
    OK(cuStreamCreate(&stream, 1));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&of, graph, context, 1, ASSIGN_DEFAULT));
    struct fill_node fill = {counter, 0, 5, 4, 1, 1};
    handle filled;
    OK(cuGraphAddMemsetNode(&filled, graph, NULL, 0, &fill, context));
    node = conditional(graph, filled, of, WHILE, 1, &bodies);
    handle adds = kernel_of(bodies[0], NULL, add_kernel, &words, &more);
    kernel_of(bodies[0], adds, down_kernel, &of, &counter);
    kernel_of(graph, node, add_kernel, &last, &one);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuMemsetD32Async(counter, 77, 1, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(word(0) == 100 && word(1) == 77 && word(2) == 2);
    OK(cuGraphExecDestroy(exec));
    OK(cuCtxSynchronize());
}

/* A kernel selects one of three graphs, which captures made; one of them has a condition of its own. */
static void captured(void) {
    handle graph, exec, stream, picture, *bodies, *inner;
    condition of, nested;
    unsigned to = 1, one = 1;
    start();
    OK(cuStreamCreate(&stream, 1));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&of, graph, context, 0, 0));
    handle decides = kernel_of(graph, NULL, decide_kernel, &of, &to);
    conditional(graph, decides, of, SWITCH, 3, &bodies);
    extern int cuStreamBeginCaptureToGraph(handle, handle, const handle *, const void *, size_t, int);
    for (unsigned i = 0; i < 3; i++) {
        OK(cuStreamBeginCaptureToGraph(stream, bodies[i], NULL, NULL, 0, 0));
        OK(cuMemsetD32Async(words + 4 * i, i + 1, 1, stream));
        OK(cuStreamEndCapture(stream, &picture));
        TRUE(picture == bodies[i]);
    }
    handle roots[1];
    size_t count = 1;
    OK(cuGraphGetRootNodes(bodies[1], roots, &count));
    OK(cuGraphConditionalHandleCreate(&nested, bodies[1], context, 0, ASSIGN_DEFAULT));
    address third = words + 12, fourth = words + 16;
    conditional(bodies[1], roots[0], nested, IF, 2, &inner);
    kernel_of(inner[0], NULL, add_kernel, &third, &one);
    kernel_of(inner[1], NULL, add_kernel, &fourth, &one);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(word(0) == 0 && word(1) == 2 && word(2) == 0 && word(3) == 0 && word(4) == 1);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

/* What a graph of a condition does wrong is found: a kernel in it writes behind its memory. */
static void outside(void) {
    handle graph, exec, *bodies;
    condition of;
    unsigned more = 1;
    address behind = 0;
    start();
    behind = words + 64;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&of, graph, context, 1, ASSIGN_DEFAULT));
    conditional(graph, NULL, of, IF, 1, &bodies);
    kernel_of(bodies[0], NULL, add_kernel, &behind, &more);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    TRUE(cuCtxSynchronize() != 0);
}

/* A stream that nothing orders after the launch. */
static void race(void) {
    handle graph, exec, first, second, *bodies;
    condition of;
    unsigned more = 1;
    start();
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&of, graph, context, 1, ASSIGN_DEFAULT));
    conditional(graph, NULL, of, IF, 1, &bodies);
    kernel_of(bodies[0], NULL, add_kernel, &words, &more);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, first));
    OK(cuMemsetD32Async(words, 3, 1, second));
    OK(cuCtxSynchronize());
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    alarm(60);
    if (!strcmp(name, "rounds")) rounds();
    if (!strcmp(name, "captured")) captured();
    if (!strcmp(name, "outside")) outside();
    if (!strcmp(name, "race")) race();
    return 0;
}
