/* Memory and events that processes of a run share; the first argument says which case. */
#include "driver_api.h"
#include "values.h"

#include <signal.h>
#include <sys/wait.h>

enum { N = 256 };

static int to_child[2], to_parent[2];
static unsigned back[N];

static void give(int file, const void *bytes, size_t count) { TRUE(write(file, bytes, count) == (ssize_t)count); }

static void get(int file, void *bytes, size_t count) { TRUE(read(file, bytes, count) == (ssize_t)count); }

static void word(int file) { give(file, "x", 1); }

static void wait_for_word(int file) {
    char byte;
    get(file, &byte, 1);
}

/* The child adds 1 to what the parent wrote. */
static void memory_child(void) {
    struct shared shared;
    address p, same;
    get(to_child[0], &shared, sizeof shared);
    begin();
    handle function = add_one();
    OK(cuIpcOpenMemHandle_v2(&p, shared, 1));
    OK(cuIpcOpenMemHandle_v2(&same, shared, 1));
    TRUE(p == same);
    address start;
    size_t bytes;
    OK(cuMemGetAddressRange_v2(&start, &bytes, p + 8));
    TRUE(start == p && bytes == 4 * N + 4);
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 5 && back[N - 1] == 5);
    OK(launch(function, p, N, NULL));
    OK(cuCtxSynchronize());
    WANT(1, cuMemFree_v2(p));
    WANT(1, cuIpcGetMemHandle(&shared, p));
    int can_be_shared = 9;
    OK(cuPointerGetAttribute(&can_be_shared, 10, p));
    TRUE(can_be_shared == 0);
    OK(cuIpcCloseMemHandle(p));
    OK(cuMemcpyDtoH_v2(back, p, 4));
    OK(cuIpcCloseMemHandle(p));
    WANT(1, cuIpcCloseMemHandle(p));
    WANT(1, cuMemcpyDtoH_v2(back, p, 4));
    word(to_parent[1]);
    /* Memory that the parent freed, and memory that is no memory. */
    wait_for_word(to_child[0]);
    WANT(1, cuIpcOpenMemHandle_v2(&p, shared, 1));
    get(to_child[0], &shared, sizeof shared);
    shared.bytes[20]++;
    WANT(1, cuIpcOpenMemHandle_v2(&p, shared, 1));
    exit(0);
}

static void memory_parent(void) {
    struct shared shared, second;
    address p, opened;
    unsigned word_back = 0;
    begin();
    handle function = add_one();
    /* A size that is no whole page. */
    OK(cuMemAlloc_v2(&p, 4 * N + 4));
    OK(cuMemsetD32_v2(p, 4, N));
    OK(launch(function, p, N, NULL));
    OK(cuCtxSynchronize());
    int can_be_shared = 0;
    OK(cuPointerGetAttribute(&can_be_shared, 10, p + 8));
    TRUE(can_be_shared == 1);
    OK(cuIpcGetMemHandle(&shared, p + 8));
    OK(cuIpcGetMemHandle(&second, p));
    TRUE(!memcmp(&shared, &second, sizeof shared));
    /* It is the same memory here, at the same address. */
    OK(cuMemcpyDtoH_v2(&word_back, p, 4));
    TRUE(word_back == 5);
    WANT(201, cuIpcOpenMemHandle_v2(&opened, shared, 1));
    give(to_child[1], &shared, sizeof shared);
    wait_for_word(to_parent[0]);
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 6 && back[N - 1] == 6);
    /* The last word was written by neither, and another process might have: no finding. */
    OK(cuMemcpyDtoH_v2(back, p + 4 * N, 4));
    OK(cuMemFree_v2(p));
    WANT(1, cuIpcGetMemHandle(&shared, p));
    word(to_child[1]);
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuIpcGetMemHandle(&shared, p));
    give(to_child[1], &shared, sizeof shared);
}

/* The parent's work, the child's work on it, and the parent's again; neither host waits in between. */
static void events_child(void) {
    struct shared memory, event, mine;
    handle theirs, ours, stream;
    address p;
    get(to_child[0], &memory, sizeof memory);
    get(to_child[0], &event, sizeof event);
    begin();
    handle function = add_one();
    OK(cuStreamCreate(&stream, 1));
    OK(cuIpcOpenMemHandle_v2(&p, memory, 1));
    OK(cuIpcOpenEventHandle(&theirs, event));
    OK(cuEventQuery(theirs));
    OK(cuEventCreate(&ours, 6));
    OK(cuIpcGetEventHandle(&mine, ours));
    give(to_parent[1], &mine, sizeof mine);
    for (int round = 0; round < 3; round++) {
        wait_for_word(to_child[0]);
        OK(cuStreamWaitEvent(stream, theirs, 0));
        OK(launch(function, p, N, stream));
        OK(cuEventRecord(ours, stream));
        word(to_parent[1]);
    }
    OK(cuEventSynchronize(theirs));
    wait_for_word(to_child[0]);
    OK(cuStreamSynchronize(stream));
    OK(cuEventDestroy_v2(theirs));
    OK(cuIpcCloseMemHandle(p));
    exit(0);
}

static void events_parent(void) {
    struct shared memory, event, theirs_shared;
    handle ours, plain, theirs, stream, second;
    address p;
    begin();
    handle function = add_one();
    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(cuMemsetD32_v2(p, 0, N));
    OK(cuCtxSynchronize());
    WANT(1, cuEventCreate(&ours, 4));
    OK(cuEventCreate(&ours, 6));
    OK(cuEventCreate(&plain, 2));
    WANT(400, cuIpcGetEventHandle(&event, plain));
    WANT(1, cuIpcGetEventHandle(&event, NULL));
    OK(cuIpcGetMemHandle(&memory, p));
    OK(cuIpcGetEventHandle(&event, ours));
    WANT(201, cuIpcOpenEventHandle(&theirs, event));
    give(to_child[1], &memory, sizeof memory);
    give(to_child[1], &event, sizeof event);
    get(to_parent[0], &theirs_shared, sizeof theirs_shared);
    OK(cuIpcOpenEventHandle(&theirs, theirs_shared));
    for (int round = 0; round < 3; round++) {
        OK(launch(function, p, N, stream));
        OK(cuEventRecord(ours, stream));
        word(to_child[1]);
        wait_for_word(to_parent[0]);
        /* Another stream goes on, after both. */
        OK(cuStreamWaitEvent(second, theirs, 0));
        OK(launch(function, p, N, second));
        OK(cuEventRecord(plain, second));
        OK(cuStreamWaitEvent(stream, plain, 0));
    }
    OK(cuEventSynchronize(ours));
    OK(cuEventSynchronize(theirs));
    OK(cuEventQuery(theirs));
    OK(cuStreamSynchronize(second));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 9 && back[N - 1] == 9);
    word(to_child[1]);
}

/* The child is killed with a record in its queue, behind a wait that nothing ends. */
static void killed_child(void) {
    struct shared shared;
    handle event, stream;
    address flag;
    begin();
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemAlloc_v2(&flag, 4));
    OK(cuMemsetD32_v2(flag, 0, 1));
    OK(cuEventCreate(&event, 6));
    OK(cuIpcGetEventHandle(&shared, event));
    OK(cuStreamWaitValue32_v2(stream, flag, 1, EQ));
    OK(cuEventRecord(event, stream));
    give(to_parent[1], &shared, sizeof shared);
    for (;;) pause();
}

static void killed_parent(int child) {
    struct shared shared;
    handle event, stream;
    int status;
    begin();
    get(to_parent[0], &shared, sizeof shared);
    OK(cuStreamCreate(&stream, 1));
    OK(cuIpcOpenEventHandle(&event, shared));
    WANT(600, cuEventQuery(event));
    OK(cuStreamWaitEvent(stream, event, 0));
    WANT(600, cuStreamQuery(stream));
    kill(child, SIGKILL);
    TRUE(waitpid(child, &status, 0) == child);
    WANT(205, cuIpcOpenEventHandle(&event, shared));
    WANT(702, cuStreamSynchronize(stream));
}

/* The parent leaves while one of its streams waits for a process that is there; and many events are made. */
static void leaves_parent(void) {
    struct shared shared;
    handle event, stream, many;
    begin();
    for (int i = 0; i < 3000; i++) {
        OK(cuEventCreate(&many, 6));
        OK(cuEventRecord(many, NULL));
        if (i % 100 == 0) OK(cuCtxSynchronize());
        OK(cuEventDestroy_v2(many));
    }
    get(to_parent[0], &shared, sizeof shared);
    OK(cuStreamCreate(&stream, 1));
    OK(cuIpcOpenEventHandle(&event, shared));
    OK(cuStreamWaitEvent(stream, event, 0));
    WANT(600, cuStreamQuery(stream));
    word(to_child[1]);
}

static void leaves_child(void) {
    struct shared shared;
    handle event, stream;
    void *flag;
    begin();
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemHostAlloc(&flag, 4, 0));
    OK(cuEventCreate(&event, 6));
    OK(cuIpcGetEventHandle(&shared, event));
    OK(cuStreamWaitValue32_v2(stream, (address)(size_t)flag, 1, EQ));
    OK(cuEventRecord(event, stream));
    give(to_parent[1], &shared, sizeof shared);
    wait_for_word(to_child[0]);
    usleep(300000);
    __atomic_store_n((unsigned *)flag, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(stream));
    exit(0);
}

int main(int count, char **which) {
    const char *name = count > 1 ? which[1] : "";
    int status = 0;
    TRUE(pipe(to_child) == 0 && pipe(to_parent) == 0);
    int child = fork();
    if (child == 0) {
        alarm(60);
        if (!strcmp(name, "memory")) memory_child();
        if (!strcmp(name, "events")) events_child();
        if (!strcmp(name, "killed")) killed_child();
        if (!strcmp(name, "leaves")) leaves_child();
        exit(1);
    }
    alarm(60);
    if (!strcmp(name, "killed")) {
        killed_parent(child);
        return 0;
    }
    if (!strcmp(name, "leaves")) {
        leaves_parent();
        return 0;
    }
    if (!strcmp(name, "memory")) memory_parent();
    if (!strcmp(name, "events")) events_parent();
    TRUE(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
