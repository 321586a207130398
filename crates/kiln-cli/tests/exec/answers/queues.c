/* Streams, events, host functions. */
#include "answers.h"

void streams(void) {
    handle stream = NULL, other = NULL, context = begin(), found = NULL;
    unsigned flags = 77;
    int priority = 77;
    unsigned long long id = 0, second = 0;
    CODE(cuStreamCreate(NULL, 0));
    CODE(cuStreamCreate(&stream, 2));
    CODE(cuStreamCreate(&stream, 0x100));
    CODE(cuStreamCreate(&stream, 1));
    CODE(cuStreamGetFlags(stream, &flags));
    value("not blocking", flags);
    CODE(cuStreamGetFlags(NULL, &flags));
    value("the default stream", flags);
    CODE(cuStreamGetFlags(stream, NULL));
    CODE(cuStreamGetPriority(stream, &priority));
    value("its priority", priority);
    CODE(cuStreamGetPriority(stream, NULL));
    CODE(cuStreamCreateWithPriority(&other, 1, -1));
    CODE(cuStreamGetPriority(other, &priority));
    value("a priority of -1", priority);
    CODE(cuStreamDestroy_v2(other));
    CODE(cuStreamCreateWithPriority(&other, 0, -1000));
    CODE(cuStreamGetPriority(other, &priority));
    value("a priority of -1000", priority);
    CODE(cuStreamGetFlags(other, &flags));
    value("blocking", flags);
    CODE(cuStreamDestroy_v2(other));
    CODE(cuStreamCreateWithPriority(&other, 0, 1000));
    CODE(cuStreamGetPriority(other, &priority));
    value("a priority of 1000", priority);
    CODE(cuStreamCreateWithPriority(NULL, 0, 0));
    CODE(cuStreamCreateWithPriority(&(handle){0}, 8, 0));
    CODE(cuStreamGetCtx(stream, &found));
    value("its context", found == context);
    CODE(cuStreamGetCtx(NULL, &found));
    value("the context of the default stream", found == context);
    CODE(cuStreamGetCtx(stream, NULL));
    CODE(cuStreamGetId(stream, &id));
    CODE(cuStreamGetId(other, &second));
    value("different ids", id != second);
    CODE(cuStreamGetId(stream, NULL));
    CODE(cuStreamQuery(stream));
    CODE(cuStreamQuery(NULL));
    CODE(cuStreamQuery((handle)1));
    CODE(cuStreamQuery((handle)2));
    CODE(cuStreamSynchronize(stream));
    CODE(cuStreamSynchronize((handle)1));
    CODE(cuStreamSynchronize((handle)2));
    CODE(cuStreamDestroy_v2(NULL));
    CODE(cuStreamDestroy_v2((handle)1));
    CODE(cuStreamDestroy_v2((handle)2));
    CODE(cuStreamDestroy_v2(other));
    CODE(cuStreamDestroy_v2(stream));
}

void destroyed_stream(void) {
    handle stream = NULL;
    address p = 0;
    begin();
    NEED(cuMemAlloc_v2(&p, 256));
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuMemsetD8Async(p, 0, 256, stream));
    CODE(cuStreamDestroy_v2(stream));
    CODE(cuStreamQuery(stream));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemsetD8Async(p, 0, 256, stream));
    CODE(cuStreamDestroy_v2(stream));
    CODE(cuCtxSynchronize());
}

void events(void) {
    handle event = NULL, plain = NULL, last = NULL, stream = NULL;
    float time = -1;
    begin();
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuEventCreate(NULL, 0));
    CODE(cuEventCreate(&event, 0x100));
    CODE(cuEventCreate(&event, 4));
    CODE(cuEventCreate(&event, 0));
    CODE(cuEventCreate(&last, 1));
    CODE(cuEventCreate(&plain, 2));
    NAMED("query before a record", cuEventQuery(event));
    NAMED("wait before a record", cuEventSynchronize(event));
    NAMED("a stream waits before a record", cuStreamWaitEvent(stream, event, 0));
    NAMED("time before a record", cuEventElapsedTime(&time, event, last));
    CODE(cuEventRecord(event, stream));
    NAMED("time of one that was not recorded", cuEventElapsedTime(&time, event, last));
    CODE(cuEventRecord(last, stream));
    CODE(cuEventRecord(plain, stream));
    CODE(cuEventSynchronize(last));
    CODE(cuEventQuery(event));
    CODE(cuEventElapsedTime(&time, event, last));
    value("not before", time >= 0);
    CODE(cuEventElapsedTime(&time, event, event));
    value("no time", time == 0);
    NAMED("time without timing", cuEventElapsedTime(&time, event, plain));
    CODE(cuEventElapsedTime(NULL, event, last));
    CODE(cuEventElapsedTime(&time, NULL, last));
    CODE(cuEventElapsedTime(&time, event, NULL));
    CODE(cuEventRecord(NULL, stream));
    CODE(cuEventQuery(NULL));
    CODE(cuEventSynchronize(NULL));
    CODE(cuEventDestroy_v2(NULL));
    CODE(cuStreamWaitEvent(stream, NULL, 0));
    CODE(cuStreamWaitEvent(stream, event, 2));
    CODE(cuStreamWaitEvent(NULL, event, 0));
    CODE(cuStreamWaitEvent(stream, event, 0));
    CODE(cuEventRecordWithFlags(event, stream, 0));
    CODE(cuEventRecordWithFlags(event, stream, 7));
    CODE(cuEventRecord(event, NULL));
    CODE(cuEventRecord(event, (handle)1));
    CODE(cuEventRecord(event, (handle)2));
    CODE(cuStreamSynchronize(stream));
    CODE(cuEventDestroy_v2(event));
    CODE(cuEventDestroy_v2(last));
    CODE(cuEventDestroy_v2(plain));
}

void destroyed_event(void) {
    handle event = NULL;
    begin();
    NEED(cuEventCreate(&event, 0));
    NEED(cuEventRecord(event, NULL));
    CODE(cuEventDestroy_v2(event));
    CODE(cuEventQuery(event));
    CODE(cuEventRecord(event, NULL));
    CODE(cuEventDestroy_v2(event));
}

static int calls, nested = -1;
static int said = -1;

static void count(void *data) {
    calls += *(int *)data;
    nested = cuStreamQuery(NULL);
}

static void told(handle stream, int code, void *data) {
    (void)stream;
    calls += *(int *)data;
    said = code;
}

void host_functions(void) {
    handle stream = NULL;
    int seven = 7;
    begin();
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuLaunchHostFunc(stream, count, &seven));
    CODE(cuLaunchHostFunc(stream, count, &seven));
    CODE(cuStreamSynchronize(stream));
    value("called twice", calls);
    value("a call of the driver inside", nested);
    CODE(cuLaunchHostFunc(stream, NULL, &seven));
    CODE(cuStreamAddCallback(stream, told, &seven, 0));
    CODE(cuStreamSynchronize(stream));
    value("and a third time", calls);
    value("with the code", said);
    CODE(cuStreamAddCallback(stream, NULL, &seven, 0));
    CODE(cuStreamAddCallback(stream, told, &seven, 1));
    CODE(cuLaunchHostFunc(NULL, count, &seven));
    CODE(cuStreamSynchronize(NULL));
    value("in the default stream", calls);
}

/* What a status of a capture says. */
static void status(const char *name, handle stream) {
    int now = 77;
    NAMED(name, cuStreamIsCapturing(stream, &now));
    value(name, now);
}

void captures(void) {
    handle stream = NULL, other = NULL, event = NULL, plain = NULL, graph = NULL;
    address p = 0, q = 0;
    void *host = NULL;
    unsigned word = 0;
    begin();
    NEED(cuMemAlloc_v2(&p, 4096));
    NEED(cuMemAllocHost_v2(&host, 4096));
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuStreamCreate(&other, 1));
    NEED(cuEventCreate(&event, 2));
    NEED(cuEventCreate(&plain, 2));
    status("before", stream);
    NAMED("no place for the status", cuStreamIsCapturing(stream, NULL));
    status("the default stream", NULL);
    CODE(cuStreamEndCapture(stream, &graph));
    CODE(cuStreamBeginCapture_v2(NULL, 0));
    CODE(cuStreamBeginCapture_v2((handle)1, 0));
    CODE(cuStreamBeginCapture_v2(stream, 7));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    status("begun", stream);
    NAMED("begun again", cuStreamBeginCapture_v2(stream, 2));
    status("after that", stream);
    CODE(cuMemsetD32Async(p, 7, 64, stream));
    CODE(cuMemcpyDtoHAsync_v2(host, p, 64, stream));
    CODE(cuEventRecord(event, stream));
    NAMED("another stream joins", cuStreamWaitEvent(other, event, 0));
    status("of the other", other);
    CODE(cuMemsetD32Async(p + 1024, 9, 64, other));
    NAMED("ended by another stream", cuStreamEndCapture(other, &graph));
    status("after it was ended by another", stream);
    NAMED("ended", cuStreamEndCapture(stream, &graph));
    value("a graph", graph != NULL);
    status("after its end", stream);
    status("of the other, after its end", other);
    CODE(cuStreamBeginCapture_v2(stream, 2));
    CODE(cuEventRecord(event, stream));
    CODE(cuStreamWaitEvent(other, event, 0));
    CODE(cuMemsetD32Async(p + 1024, 9, 64, other));
    NAMED("work that was not joined", cuStreamEndCapture(stream, &graph));
    value("no graph", graph == NULL);
    CODE(cuStreamBeginCapture_v2(stream, 2));
    CODE(cuEventRecord(event, stream));
    CODE(cuStreamWaitEvent(other, event, 0));
    CODE(cuMemsetD32Async(p + 1024, 9, 64, other));
    CODE(cuEventRecord(plain, other));
    CODE(cuStreamWaitEvent(stream, plain, 0));
    NAMED("work that was joined", cuStreamEndCapture(stream, &graph));
    value("a graph of joined work", graph != NULL);
    CODE(cuGraphDestroy(graph));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    NAMED("a wait for the stream", cuStreamSynchronize(stream));
    status("after the wait", stream);
    NAMED("work after that", cuMemsetD32Async(p, 7, 64, stream));
    NAMED("its end", cuStreamEndCapture(stream, &graph));
    value("no graph after the wait", graph == NULL);
    CODE(cuStreamBeginCapture_v2(stream, 2));
    NAMED("a query", cuStreamQuery(stream));
    NAMED("its end", cuStreamEndCapture(stream, &graph));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    CODE(cuEventRecord(event, stream));
    NAMED("a query of an event", cuEventQuery(event));
    NAMED("a wait for an event", cuEventSynchronize(event));
    NAMED("its end", cuStreamEndCapture(stream, &graph));
    NAMED("the event after the capture", cuEventQuery(event));
    NAMED("a stream waits for it", cuStreamWaitEvent(other, event, 0));
    CODE(cuEventRecord(plain, other));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    NAMED("an event from outside", cuStreamWaitEvent(stream, plain, 0));
    NAMED("its end", cuStreamEndCapture(stream, &graph));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    CODE(cuStreamBeginCapture_v2(other, 2));
    CODE(cuEventRecord(event, stream));
    NAMED("two captures meet", cuStreamWaitEvent(other, event, 0));
    NAMED("the end of the first", cuStreamEndCapture(stream, &graph));
    NAMED("the end of the second", cuStreamEndCapture(other, &graph));
    CODE(cuStreamBeginCapture_v2(stream, 0));
    NAMED("memory in a global capture", cuMemAlloc_v2(&q, 16));
    status("after that", stream);
    NAMED("its end", cuStreamEndCapture(stream, &graph));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    NAMED("a synchronous copy beside a relaxed capture", cuMemcpyDtoH_v2(&word, p, 4));
    NAMED("its end", cuStreamEndCapture(stream, &graph));
    CODE(cuStreamBeginCapture_v2(stream, 2));
    NAMED("a destroyed stream", cuStreamDestroy_v2(stream));
    NAMED("a wait for everything", cuCtxSynchronize());
}

void graphs(void) {
    handle stream = NULL, graph = NULL, exec = NULL, empty = NULL, function = NULL, copy = NULL;
    address p = 0;
    size_t count = 77;
    unsigned got = 0;
    unsigned long long flags = 77;
    handle nodes[8];
    begin();
    function = add_one();
    NEED(cuMemAlloc_v2(&p, 4096));
    NEED(cuMemsetD32_v2(p, 0, 1024));
    NEED(cuCtxSynchronize());
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuGraphCreate(&empty, 0));
    CODE(cuGraphCreate(NULL, 0));
    CODE(cuGraphCreate(&graph, 1));
    CODE(cuGraphGetNodes(empty, NULL, &count));
    value("nodes of an empty graph", (long long)count);
    CODE(cuGraphInstantiateWithFlags(&exec, empty, 0));
    CODE(cuGraphLaunch(exec, stream));
    CODE(cuGraphExecDestroy(exec));
    CODE(cuGraphDestroy(empty));
    CODE(cuGraphDestroy(NULL));
    NEED(cuStreamBeginCapture_v2(stream, 2));
    CODE(launch(function, p, 100, stream));
    CODE(launch(function, p, 50, stream));
    NEED(cuStreamEndCapture(stream, &graph));
    CODE(cuGraphGetNodes(graph, NULL, &count));
    value("nodes", (long long)count);
    count = 1;
    CODE(cuGraphGetNodes(graph, nodes, &count));
    value("nodes in a list of one", (long long)count);
    count = 8;
    CODE(cuGraphGetNodes(graph, nodes, &count));
    value("nodes in a list of eight", (long long)count);
    count = 8;
    CODE(cuGraphGetRootNodes(graph, nodes, &count));
    value("roots", (long long)count);
    CODE(cuGraphGetNodes(graph, NULL, NULL));
    CODE(cuGraphInstantiateWithFlags(NULL, graph, 0));
    CODE(cuGraphInstantiateWithFlags(&exec, NULL, 0));
    CODE(cuGraphInstantiateWithFlags(&exec, graph, 1ull << 40));
    CODE(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CODE(cuGraphExecGetFlags(exec, &flags));
    value("flags", (long long)flags);
    CODE(cuGraphClone(&copy, graph));
    CODE(cuGraphDestroy(copy));
    CODE(cuGraphDestroy(graph));
    CODE(cuGraphUpload(exec, stream));
    CODE(cuGraphLaunch(exec, stream));
    CODE(cuGraphLaunch(exec, stream));
    CODE(cuGraphLaunch(exec, NULL));
    CODE(cuGraphLaunch(NULL, stream));
    CODE(cuCtxSynchronize());
    CODE(cuMemcpyDtoH_v2(&got, p, 4));
    value("six were added", got);
    CODE(cuMemcpyDtoH_v2(&got, p + 4 * 99, 4));
    value("three were added", got);
    CODE(cuGraphExecDestroy(exec));
    CODE(cuGraphExecDestroy(NULL));
}
