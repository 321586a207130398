/* Functions of the host in the order of a stream; the first argument says which case. */
#include "driver_api.h"

#include <pthread.h>
#include <semaphore.h>

int cuGraphNodeGetType(handle node, int *kind);

enum { N = 256 };

static sem_t go_on, began;
static unsigned *pinned;
static int calls, code_inside, code_stream, code_event, told = -1;
static handle stream, other, event;
static pthread_t caller;

static void count(void *data) { calls += (int)(size_t)data; }

/* Waits until the main thread says so. */
static void blocked(void *data) {
    sem_post(&began);
    sem_wait(&go_on);
    TRUE(!pthread_equal(caller, pthread_self()));
    calls += (int)(size_t)data;
}

static void writes(void *data) {
    TRUE(pinned[0] == 8);
    for (int i = 0; i < N; i++) pinned[i] = 100;
    calls++;
}

static void inside(void *data) {
    address p;
    code_inside = cuMemAlloc_v2(&p, 64);
    code_stream = cuStreamQuery(stream);
    code_event = cuEventRecord(event, stream);
}

static void callback(handle of, int status, void *data) {
    TRUE(of == stream && data == &told);
    told = status;
}

static void never(void *data) {
    fprintf(stderr, "it was called\n");
    _exit(9);
}

/* The function comes after what is before it, and before what is behind it. */
static void order(handle function, address p) {
    OK(cuMemsetD32Async(p, 7, N, stream));
    OK(launch(function, p, N, stream));
    OK(cuMemcpyAsync((address)(size_t)pinned, p, 4 * N, stream));
    OK(cuLaunchHostFunc(stream, writes, NULL));
    OK(cuMemcpyAsync(p, (address)(size_t)pinned, 4 * N, stream));
    OK(launch(function, p, N, stream));
    OK(cuMemcpyAsync((address)(size_t)pinned, p, 4 * N, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 1 && pinned[0] == 101 && pinned[N - 1] == 101);
    OK(cuStreamAddCallback(stream, callback, &told, 0));
    OK(cuStreamSynchronize(stream));
    TRUE(told == 0);
}

/* The caller does not wait for the function, and the program may wait for it without a call. */
static void waits_for_main(handle function, address p) {
    handle third;
    OK(cuMemsetD32Async(p, 0, N, stream));
    OK(cuLaunchHostFunc(stream, blocked, (void *)1));
    OK(launch(function, p, N, stream));
    OK(cuEventRecord(event, stream));
    sem_wait(&began);
    for (int i = 0; i < 50; i++) {
        WANT(600, cuStreamQuery(stream));
        WANT(600, cuEventQuery(event));
    }
    /* Streams that do not wait for it go on. */
    OK(cuStreamCreate(&third, 1));
    OK(cuMemsetD32Async(p + 4 * N, 5, N, third));
    OK(launch(function, p + 4 * N, N, third));
    OK(cuStreamSynchronize(third));
    /* One that waits for the event does not, nor does the default stream. */
    OK(cuStreamWaitEvent(third, event, 0));
    OK(launch(function, p, N, third));
    OK(cuMemsetD8Async(p + 8 * N, 1, 4, NULL));
    WANT(600, cuStreamQuery(third));
    WANT(600, cuStreamQuery(NULL));
    TRUE(calls == 0);
    sem_post(&go_on);
    OK(cuStreamSynchronize(third));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(pinned, p, 4 * N));
    TRUE(calls == 1 && pinned[0] == 2);
}

/* A stream may be destroyed while its function waits; the order stays. */
static void destroyed(handle function, address p) {
    OK(cuMemsetD32Async(p, 0, N, stream));
    OK(cuLaunchHostFunc(stream, blocked, (void *)1));
    OK(launch(function, p, N, stream));
    OK(cuEventRecord(event, stream));
    OK(cuStreamDestroy_v2(stream));
    WANT(400, cuLaunchHostFunc(stream, count, NULL));
    OK(cuLaunchHostFunc(NULL, count, (void *)10));
    sem_wait(&began);
    TRUE(calls == 0);
    sem_post(&go_on);
    OK(cuEventSynchronize(event));
    OK(cuCtxSynchronize());
    TRUE(calls == 11);
}

/* In a capture a function becomes a node, which is called in each launch. */
static void captured(handle function, address p) {
    handle graph, exec, nodes[4];
    size_t size = 4;
    int kind = -1;
    OK(cuStreamBeginCapture_v2(stream, 2));
    OK(cuMemsetD32Async(p, 3, N, stream));
    OK(cuLaunchHostFunc(stream, count, (void *)1));
    OK(launch(function, p, N, stream));
    OK(cuStreamEndCapture(stream, &graph));
    TRUE(calls == 0);
    OK(cuGraphGetNodes(graph, nodes, &size));
    TRUE(size == 3);
    OK(cuGraphNodeGetType(nodes[1], &kind));
    TRUE(kind == 3);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch(exec, stream));
    /* An executable graph may be destroyed while it is queued. */
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(stream));
    TRUE(calls == 3);
    OK(cuMemcpyDtoH_v2(pinned, p, 4 * N));
    TRUE(pinned[5] == 4);
    /* Callbacks cannot be captured. */
    OK(cuStreamBeginCapture_v2(stream, 2));
    WANT(900, cuStreamAddCallback(stream, callback, &told, 0));
    WANT(901, cuStreamEndCapture(stream, &graph));
    /* Nor can what is queued by a function of the host in the default stream, which nothing captures. */
    OK(cuLaunchHostFunc(NULL, count, (void *)1));
    OK(cuStreamSynchronize(NULL));
    TRUE(calls == 4);
}

int main(int words, char **which) {
    handle function;
    address p;
    caller = pthread_self();
    sem_init(&go_on, 0, 0);
    sem_init(&began, 0, 0);
    begin();
    function = add_one();
    OK(cuMemAlloc_v2(&p, 16 * N));
    OK(cuMemAllocHost_v2((void **)&pinned, 4 * N));
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamCreate(&other, 1));
    OK(cuEventCreate(&event, 2));
    const char *name = words > 1 ? which[1] : "";
    if (!strcmp(name, "order")) order(function, p);
    else if (!strcmp(name, "waits for main")) waits_for_main(function, p);
    else if (!strcmp(name, "destroyed")) destroyed(function, p);
    else if (!strcmp(name, "captured")) captured(function, p);
    else if (!strcmp(name, "no call")) {
        /* The main thread hears of the function alone. */
        OK(cuMemsetD32Async(p, 7, N, stream));
        OK(cuLaunchHostFunc(stream, blocked, (void *)1));
        sem_wait(&began);
        /* What it told is order enough for another stream. */
        OK(cuMemsetD32Async(p, 8, N, other));
        OK(cuStreamSynchronize(other));
        sem_post(&go_on);
    } else if (!strcmp(name, "inside")) {
        OK(cuLaunchHostFunc(stream, inside, NULL));
        OK(cuStreamSynchronize(stream));
        TRUE(code_inside == 800 && code_stream == 800 && code_event == 800);
    } else if (!strcmp(name, "lost")) {
        /* A callback is told of a failure before it; a host function is not called. */
        OK(cuLaunchHostFunc(stream, blocked, (void *)1));
        OK(launch(function, 16, N, stream));
        OK(cuStreamAddCallback(stream, callback, &told, 0));
        OK(cuLaunchHostFunc(stream, never, NULL));
        sem_post(&go_on);
        WANT(700, cuStreamSynchronize(stream));
        for (int i = 0; i < 2000 && told < 0; i++) usleep(1000);
        TRUE(told == 700);
        WANT(700, cuLaunchHostFunc(stream, never, NULL));
    } else if (!strcmp(name, "ends")) {
        /* What is queued when the process ends is not called. */
        OK(cuLaunchHostFunc(stream, blocked, (void *)1));
        OK(cuLaunchHostFunc(stream, never, NULL));
        sem_wait(&began);
    } else if (!strcmp(name, "race")) {
        OK(cuLaunchHostFunc(stream, blocked, (void *)1));
        OK(cuMemsetD32Async(p, 7, N, stream));
        OK(cuMemsetD32Async(p, 8, N, other));
        sem_post(&go_on);
        OK(cuCtxSynchronize());
    }
    return 0;
}
