/* Conditional nodes of graphs. */
#include "answers.h"

#include "../conditions.h"
#include "../graph_parts.h"

static handle context;

static struct conditional node_of(condition of, int type, unsigned size) {
    return (struct conditional){.kind = CONDITIONAL_NODE, .of = of, .type = type, .size = size, .context = context};
}

static condition made(handle graph, unsigned initial, unsigned flags) {
    condition of = 0;
    NEED(cuGraphConditionalHandleCreate(&of, graph, context, initial, flags));
    return of;
}

static void nothing(void *data) { (void)data; }

/* How many nodes a graph has. */
static long long nodes_of(handle graph) {
    size_t count = 77;
    return cuGraphGetNodes(graph, NULL, &count) == 0 ? (long long)count : -1;
}

void conditions(void) {
    handle graph = NULL, other = NULL, node = NULL, empty = NULL, wrong = NULL, exec = NULL, list[4] = {0};
    condition of = 0, second = 0;
    struct conditional given;
    int kind = -1;
    context = begin();
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphCreate(&other, 0));
    NEED(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
    CODE(cuGraphConditionalHandleCreate(&of, graph, context, 1, ASSIGN_DEFAULT));
    value("a condition", of != 0);
    CODE(cuGraphConditionalHandleCreate(NULL, graph, context, 1, ASSIGN_DEFAULT));
    CODE(cuGraphConditionalHandleCreate(&second, NULL, context, 1, ASSIGN_DEFAULT));
    NAMED("a condition without a context", cuGraphConditionalHandleCreate(&second, graph, NULL, 1, ASSIGN_DEFAULT));
    NAMED("a condition with a wrong flag", cuGraphConditionalHandleCreate(&second, graph, context, 1, 2));
    NAMED("a value without the flag", cuGraphConditionalHandleCreate(&second, graph, context, 1, 0));
    NAMED("no value", cuGraphConditionalHandleCreate(&second, graph, context, 0, 0));
    value("another condition", second != 0 && second != of);

    given = node_of(of, IF, 1);
    NAMED("if", cuGraphAddNode(&node, graph, &empty, 1, &given));
    value("its body", given.bodies != NULL && given.bodies[0] != NULL);
    handle body = given.bodies ? given.bodies[0] : NULL;
    NAMED("the same condition again", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    CODE(cuGraphNodeGetType(node, &kind));
    value("kind", kind);
    value("nodes", nodes_of(graph));
    value("nodes of the body", nodes_of(body));
    given = node_of(0, IF, 1);
    NAMED("no condition", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(0x1234, IF, 1);
    NAMED("a wild condition", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    second = made(other, 0, ASSIGN_DEFAULT);
    given = node_of(second, IF, 1);
    NAMED("the condition of another graph", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, 3, 1);
    NAMED("no type", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, -1, 1);
    NAMED("a type below all", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, IF, 0);
    NAMED("if without a body", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, IF, 3);
    NAMED("if with three bodies", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, WHILE, 0);
    NAMED("while without a body", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, WHILE, 2);
    NAMED("while with two bodies", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, SWITCH, 0);
    NAMED("switch without a body", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    given = node_of(second, IF, 1);
    given.context = NULL;
    NAMED("a node without a context", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, IF, 1);
    given.reserved[0] = 1;
    NAMED("a reserved word", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, IF, 1);
    NAMED("no place for the node", cuGraphAddNode(NULL, graph, NULL, 0, &given));
    NAMED("no graph", cuGraphAddNode(&wrong, NULL, NULL, 0, &given));
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, IF, 2);
    NAMED("if and else", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    value("two bodies", given.bodies && given.bodies[0] && given.bodies[1] && given.bodies[0] != given.bodies[1]);
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, SWITCH, 5);
    NAMED("switch", cuGraphAddNode(&wrong, graph, NULL, 0, &given));
    value("five bodies", given.bodies && given.bodies[4]);
    NAMED("a list of nodes", cuGraphGetNodes(given.bodies[4], list, &(size_t){4}));
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, WHILE, 1);
    NAMED("while", cuGraphAddNode(&wrong, graph, NULL, 0, &given));

    given = node_of(of, IF, 1);
    NAMED("other parameters", cuGraphNodeSetParams(node, &given));
    second = made(graph, 0, ASSIGN_DEFAULT);
    given = node_of(second, IF, 1);
    NAMED("another condition for the node", cuGraphNodeSetParams(node, &given));
    NAMED("a clone", cuGraphClone(&wrong, graph));
    CODE(cuGraphInstantiateWithFlags(&exec, graph, 0));
    given = node_of(of, IF, 1);
    NAMED("other parameters of an executable graph", cuGraphExecNodeSetParams(exec, node, &given));
    NAMED("switched off", cuGraphNodeSetEnabled(exec, node, 0));
    CODE(cuGraphLaunch(exec, NULL));
    CODE(cuCtxSynchronize());
    NAMED("a second one", cuGraphInstantiateWithFlags(&wrong, graph, 0));
    unsigned long long result[4] = {0};
    NAMED("an update", cuGraphExecUpdate_v2(exec, graph, result));
    value("its result", (int)result[0]);
    CODE(cuGraphLaunch(exec, NULL));
    CODE(cuCtxSynchronize());
    NAMED("the node destroyed", cuGraphDestroyNode(node));
    value("nodes then", nodes_of(graph));
    CODE(cuGraphExecDestroy(exec));
    CODE(cuGraphDestroy(graph));
    CODE(cuGraphDestroy(other));
}

/* What a body may have in it. */
void condition_bodies(void) {
    handle graph = NULL, node = NULL, wrong = NULL, child = NULL, exec = NULL, event = NULL, stream = NULL, inside = NULL;
    handle picture = NULL;
    struct graph_memory memory = {.kind = 1, .location_kind = 1, .bytes = 4096};
    address p = 0;
    context = begin();
    NEED(cuMemAlloc_v2(&p, 64));
    NEED(cuEventCreate(&event, 2));
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphCreate(&child, 0));
    NEED(cuGraphAddEmptyNode(&node, child, NULL, 0));
    struct conditional given = node_of(made(graph, 1, ASSIGN_DEFAULT), IF, 1);
    NEED(cuGraphAddNode(&node, graph, NULL, 0, &given));
    handle body = given.bodies[0];
    struct fill_node fill = {p, 0, 3, 4, 1, 1};
    NAMED("a fill in a body", cuGraphAddMemsetNode(&wrong, body, NULL, 0, &fill, context));
    NAMED("an empty node in a body", cuGraphAddEmptyNode(&wrong, body, NULL, 0));
    NAMED("a graph in a body", cuGraphAddChildGraphNode(&wrong, body, NULL, 0, child));
    NAMED("a condition of the graph in a body",
          cuGraphAddNode(&wrong, body, NULL, 0, &(struct conditional){.kind = CONDITIONAL_NODE, .of = made(graph, 0, 1), .size = 1, .context = context}));
    NAMED("a condition of the body", cuGraphConditionalHandleCreate(&(condition){0}, body, context, 0, 1));
    value("nodes", nodes_of(body));
    CODE(cuGraphInstantiateWithFlags(&exec, graph, 0));
    NAMED("launched", cuGraphLaunch(exec, NULL));
    CODE(cuCtxSynchronize());
    NAMED("a body by itself", cuGraphInstantiateWithFlags(&inside, body, 0));
    NAMED("a clone of a body", cuGraphClone(&inside, body));
    NAMED("a graph with a condition as a child", cuGraphAddChildGraphNode(&wrong, child, NULL, 0, graph));
    NAMED("its picture", cuGraphDebugDotPrint(graph, P_tmpdir "/kiln-answers.dot", 0));
    /* A capture into a body. */
    NAMED("a capture into a body", cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, 2));
    NAMED("a fill", cuMemsetD8Async(p, 1, 8, stream));
    NAMED("the end of the capture", cuStreamEndCapture(stream, &picture));
    value("the body", picture == body);
    value("nodes then", nodes_of(body));
    NAMED("memory in a body", cuGraphAddMemAllocNode(&wrong, body, NULL, 0, &memory));
    NAMED("an event in a body", cuGraphAddEventRecordNode(&wrong, body, NULL, 0, event));
    NAMED("an event waited for in a body", cuGraphAddEventWaitNode(&wrong, body, NULL, 0, event));
    struct {
        void (*function)(void *);
        void *data;
    } host = {nothing, NULL};
    NAMED("a host function in a body", cuGraphAddHostNode(&wrong, body, NULL, 0, &host));
    NAMED("made executable with all of them", cuGraphInstantiateWithFlags(&inside, graph, 0));
    NAMED("a launch then", cuGraphLaunch(exec, NULL));
    CODE(cuCtxSynchronize());
}

/* A body is destroyed with its node; a call that destroys it. */
void condition_body_destroyed(void) {
    handle graph = NULL, node = NULL, exec = NULL;
    context = begin();
    NEED(cuGraphCreate(&graph, 0));
    struct conditional given = node_of(made(graph, 1, ASSIGN_DEFAULT), IF, 1);
    NEED(cuGraphAddNode(&node, graph, NULL, 0, &given));
    NAMED("a body destroyed", cuGraphDestroy(given.bodies[0]));
    NAMED("the graph then", cuGraphInstantiateWithFlags(&exec, graph, 0));
    CODE(cuGraphDestroy(graph));
}

/* A condition that no node has. */
void condition_alone(void) {
    handle graph = NULL, node = NULL, exec = NULL, body;
    context = begin();
    NEED(cuGraphCreate(&graph, 0));
    made(graph, 1, ASSIGN_DEFAULT);
    NAMED("a graph of nothing and a condition", cuGraphInstantiateWithFlags(&exec, graph, 0));
    NAMED("its launch", cuGraphLaunch(exec, NULL));
    NEED(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    NAMED("with a node", cuGraphInstantiateWithFlags(&exec, graph, 0));
    NAMED("its launch", cuGraphLaunch(exec, NULL));
    CODE(cuCtxSynchronize());
    /* A graph with a condition in one around it. */
    struct conditional given = node_of(made(graph, 1, ASSIGN_DEFAULT), IF, 1);
    NEED(cuGraphAddNode(&node, graph, NULL, 0, &given));
    body = given.bodies[0];
    given = node_of(made(body, 1, ASSIGN_DEFAULT), WHILE, 1);
    NAMED("a node of a body's condition in the graph", cuGraphAddNode(&node, graph, NULL, 0, &given));
    given = node_of(made(body, 0, ASSIGN_DEFAULT), WHILE, 1);
    NAMED("a node of a body's condition in the body", cuGraphAddNode(&node, body, NULL, 0, &given));
    NAMED("made executable", cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static handle decide_kernel, down_kernel, add_kernel;

static handle kernel_of(handle graph, handle after, handle function, void *first, void *second) {
    void *parameters[] = {first, second};
    struct kernel_node given = {function, {1, 1, 1}, {1, 1, 1}, 0, parameters, NULL, NULL, NULL};
    handle node = NULL;
    NEED(cuGraphAddKernelNode_v2(&node, graph, after ? &after : NULL, after != NULL, &given));
    return node;
}

/* Words that the cases of `condition_runs` count in. */
static address words_there;

static void said(const char *name, unsigned word) {
    unsigned now = 77;
    NEED(cuCtxSynchronize());
    NEED(cuMemcpyDtoH_v2(&now, words_there + 4 * word, 4));
    value(name, now);
}

static handle launched(handle graph, int times) {
    handle exec = NULL;
    NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
    while (times--) NEED(cuGraphLaunch(exec, NULL));
    return exec;
}

/* A graph with one node, each of whose bodies adds another power of ten to a word. */
static void by_default(const char *name, int type, unsigned bodies, unsigned initial) {
    handle graph = NULL, node = NULL;
    unsigned more = 1;
    NEED(cuMemsetD32_v2(words_there, 0, 1));
    NEED(cuGraphCreate(&graph, 0));
    struct conditional given = node_of(made(graph, initial, ASSIGN_DEFAULT), type, bodies);
    NEED(cuGraphAddNode(&node, graph, NULL, 0, &given));
    for (unsigned i = 0; i < bodies; i++, more *= 10) kernel_of(given.bodies[i], NULL, add_kernel, &words_there, &more);
    launched(graph, 2);
    said(name, 0);
}

/* A kernel decides, another comes behind. */
static void by_kernel(const char *name, int type, unsigned bodies, unsigned to) {
    handle graph = NULL, node = NULL;
    unsigned more = 1, last = 5;
    address behind = words_there + 4;
    NEED(cuMemsetD32_v2(words_there, 0, 2));
    NEED(cuGraphCreate(&graph, 0));
    struct conditional given = node_of(made(graph, 0, 0), type, bodies);
    handle decides = kernel_of(graph, NULL, decide_kernel, &given.of, &to);
    NEED(cuGraphAddNode(&node, graph, &decides, 1, &given));
    for (unsigned i = 0; i < bodies; i++, more *= 10) kernel_of(given.bodies[i], NULL, add_kernel, &words_there, &more);
    kernel_of(graph, node, add_kernel, &behind, &last);
    launched(graph, 2);
    said(name, 0);
    said("behind it", 1);
}

void condition_runs(void) {
    handle graph = NULL, node = NULL, module = NULL;
    unsigned more = 1, four = 4;
    context = begin();
    NAMED("loaded without the device runtime", cuModuleLoadData(&module, CONDITIONS));
    int linked = condition_module(&module);
    value("linked", linked);
    NEED(linked);
    NEED(cuModuleGetFunction(&decide_kernel, module, "decide"));
    NEED(cuModuleGetFunction(&down_kernel, module, "count_down"));
    NEED(cuModuleGetFunction(&add_kernel, module, "add"));
    NEED(cuMemAlloc_v2(&words_there, 64));
    by_default("if of 1", IF, 1, 1);
    by_default("if of 7", IF, 1, 7);
    by_default("if of 0", IF, 1, 0);
    by_default("if and else of 1", IF, 2, 1);
    by_default("if and else of 0", IF, 2, 0);
    by_default("switch of 0", SWITCH, 3, 0);
    by_default("switch of 2", SWITCH, 3, 2);
    by_default("switch of 3", SWITCH, 3, 3);
    by_default("while of 0", WHILE, 1, 0);
    by_kernel("a kernel decides for it", IF, 1, 1);
    by_kernel("a kernel decides against it", IF, 1, 0);
    by_kernel("a kernel decides for else", IF, 2, 0);
    by_kernel("a kernel selects 1", SWITCH, 3, 1);
    by_kernel("a kernel selects nothing", SWITCH, 3, 9);

    /* Rounds, each of which adds 1; the counter is filled in the graph, so that a second launch has them again. */
    address counter = words_there + 8;
    NEED(cuMemsetD32_v2(words_there, 0, 4));
    NEED(cuGraphCreate(&graph, 0));
    struct fill_node fill = {counter, 0, 4, 4, 1, 1};
    handle filled = NULL;
    NEED(cuGraphAddMemsetNode(&filled, graph, NULL, 0, &fill, context));
    struct conditional given = node_of(made(graph, 1, ASSIGN_DEFAULT), WHILE, 1);
    NEED(cuGraphAddNode(&node, graph, &filled, 1, &given));
    handle adds = kernel_of(given.bodies[0], NULL, add_kernel, &words_there, &more);
    kernel_of(given.bodies[0], adds, down_kernel, &given.of, &counter);
    handle exec = launched(graph, 1);
    said("rounds", 0);
    NEED(cuGraphLaunch(exec, NULL));
    said("rounds of two launches", 0);

    /* A condition in a body: in each round an inner loop of four. */
    address inner = words_there + 12;
    NEED(cuMemsetD32_v2(words_there, 0, 4));
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemsetNode(&filled, graph, NULL, 0, &fill, context));
    given = node_of(made(graph, 1, ASSIGN_DEFAULT), WHILE, 1);
    NEED(cuGraphAddNode(&node, graph, &filled, 1, &given));
    handle body = given.bodies[0], counts = kernel_of(body, NULL, down_kernel, &given.of, &counter);
    handle set = kernel_of(body, counts, add_kernel, &inner, &four);
    condition nested = 0;
    NAMED("a condition of the body", cuGraphConditionalHandleCreate(&nested, body, context, 1, ASSIGN_DEFAULT));
    given = node_of(nested, WHILE, 1);
    NAMED("in the body", cuGraphAddNode(&node, body, &set, 1, &given));
    NEED(given.bodies == NULL);
    adds = kernel_of(given.bodies[0], NULL, add_kernel, &words_there, &more);
    kernel_of(given.bodies[0], adds, down_kernel, &given.of, &inner);
    exec = launched(graph, 1);
    said("rounds of rounds", 0);
    said("the inner counter", 3);
}

/* The default of a condition in a body: set at each launch, or at each round. */
void condition_default_in_body(void) {
    handle graph = NULL, node = NULL, module = NULL, filled = NULL;
    unsigned more = 1, none = 0;
    context = begin();
    NEED(condition_module(&module));
    NEED(cuModuleGetFunction(&decide_kernel, module, "decide"));
    NEED(cuModuleGetFunction(&down_kernel, module, "count_down"));
    NEED(cuModuleGetFunction(&add_kernel, module, "add"));
    NEED(cuMemAlloc_v2(&words_there, 64));
    NEED(cuMemsetD32_v2(words_there, 0, 4));
    address counter = words_there + 8;
    struct fill_node fill = {counter, 0, 4, 4, 1, 1};
    NEED(cuGraphCreate(&graph, 0));
    NEED(cuGraphAddMemsetNode(&filled, graph, NULL, 0, &fill, context));
    struct conditional given = node_of(made(graph, 1, ASSIGN_DEFAULT), WHILE, 1);
    NEED(cuGraphAddNode(&node, graph, &filled, 1, &given));
    handle body = given.bodies[0], counts = kernel_of(body, NULL, down_kernel, &given.of, &counter);
    given = node_of(made(body, 1, ASSIGN_DEFAULT), IF, 1);
    NEED(cuGraphAddNode(&node, body, &counts, 1, &given));
    handle adds = kernel_of(given.bodies[0], NULL, add_kernel, &words_there, &more);
    kernel_of(given.bodies[0], adds, decide_kernel, &given.of, &none);
    launched(graph, 1);
    said("rounds in which it was so", 0);
}
