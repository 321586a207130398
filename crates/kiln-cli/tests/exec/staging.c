/* Copies of pageable memory, which go through pinned memory of the library; the first argument says which, the second how often. */
#include "driver_api.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { N = 1024, THREADS = 4 };

static unsigned from[4 * N], to[4 * N];
static handle context;
static address p;
static sem_t go_on, began;

static void fill_with(unsigned value) {
    for (int i = 0; i < N; i++) from[i] = value + (unsigned)i;
}

static void expect(unsigned value) {
    for (int i = 0; i < N; i++) TRUE(to[i] == value + (unsigned)i);
}

/* Copies to and from the device, with a wait in each call or behind it. */
static void copies(unsigned count) {
    handle stream;
    OK(cuStreamCreate(&stream, 1));
    for (unsigned round = 0; round < count; round++) {
        fill_with(round);
        memset(to, 0, sizeof to);
        OK(cuMemcpyHtoD_v2(p, from, 4 * N));
        OK(cuMemcpyDtoH_v2(to, p, 4 * N));
        expect(round);
        fill_with(round + 7);
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        /* What is staged is another copy of it. */
        memset(from, 0, sizeof from);
        OK(cuStreamSynchronize(stream));
        OK(cuMemcpyDtoHAsync_v2(to, p, 4 * N, stream));
        OK(cuStreamSynchronize(stream));
        expect(round + 7);
    }
    OK(cuStreamDestroy_v2(stream));
}

/* Streams that are destroyed with a copy in them. */
static void gone_streams(unsigned count) {
    for (unsigned round = 0; round < count; round++) {
        handle stream;
        fill_with(round);
        OK(cuStreamCreate(&stream, 1));
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        OK(cuStreamDestroy_v2(stream));
        OK(cuCtxSynchronize());
        OK(cuMemcpyDtoH_v2(to, p, 4 * N));
        expect(round);
    }
}

/* A wait for the default stream is one for the streams that it waits for. */
static void default_stream(unsigned count) {
    handle stream;
    OK(cuStreamCreate(&stream, 0));
    for (unsigned round = 0; round < count; round++) {
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        OK(cuStreamSynchronize(NULL));
    }
}

/* A question whose answer is that all is done. */
static void queries(unsigned count) {
    handle stream;
    OK(cuStreamCreate(&stream, 1));
    for (unsigned round = 0; round < count; round++) {
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        for (;;) {
            int code = cuStreamQuery(stream);
            if (code == 0) break;
            TRUE(code == 600);
        }
    }
}

/* Events that are waited for, and asked. */
static void events(unsigned count) {
    handle stream, event;
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&event, 2));
    for (unsigned round = 0; round < count; round++) {
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        OK(cuEventRecord(event, stream));
        OK(cuEventSynchronize(event));
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        OK(cuEventRecord(event, stream));
        while (cuEventQuery(event) == 600) {}
        OK(cuEventQuery(event));
    }
}

/* Copies that are never waited for, of few bytes. */
static void never_waited(unsigned count) {
    handle stream;
    OK(cuStreamCreate(&stream, 1));
    for (unsigned round = 0; round < count; round++) {
        fill_with(round);
        OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
    }
    OK(cuMemcpyDtoHAsync_v2(to, p, 4 * N, stream));
    OK(cuStreamSynchronize(stream));
    expect(count - 1);
}

/* Addresses without memory, which the library finds when it has a block for them. */
static void wild(unsigned count) {
    OK(cuMemcpyHtoD_v2(p, from, 4 * N));
    for (unsigned round = 0; round < count; round++) {
        WANT(1, cuMemcpyHtoD_v2(p, (void *)0x10000, 4 * N));
        WANT(1, cuMemcpyDtoH_v2((void *)0x10000, p, 4 * N));
        OK(cuMemcpyHtoD_v2(p, from, 4 * N));
    }
}

/* Rows of which each lies elsewhere, and blocks of many sizes. */
static void rows(unsigned count) {
    for (unsigned round = 0; round < count; round++) {
        struct copy2d copy = {0};
        unsigned width = 4 * (1 + round % 61), height = 1 + round % 13;
        fill_with(round);
        copy.from_kind = 1, copy.from_host = from, copy.from_pitch = 256;
        copy.to_kind = 2, copy.to_device = p, copy.to_pitch = 320;
        copy.width = width, copy.height = height;
        OK(cuMemcpy2D_v2(&copy));
        memset(to, 0, sizeof to);
        copy.from_kind = 2, copy.from_device = p, copy.from_pitch = 320;
        copy.to_kind = 1, copy.to_host = to, copy.to_pitch = 256;
        OK(cuMemcpy2D_v2(&copy));
        for (unsigned y = 0; y < height; y++) TRUE(memcmp((char *)to + 256 * y, (char *)from + 256 * y, width) == 0);
    }
}

/* Each thread copies on a stream of its own, and to a block of its own. */
static void *copier(void *number) {
    unsigned mine[N], back[N];
    handle stream;
    address block = p + 4 * N * (address)(size_t)number;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, 1));
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < N; i++) mine[i] = (unsigned)(size_t)number * 100000 + round + i;
        OK(cuMemcpyHtoDAsync_v2(block, mine, sizeof mine, stream));
        OK(cuMemcpyDtoHAsync_v2(back, block, sizeof back, stream));
        OK(cuStreamSynchronize(stream));
        TRUE(memcmp(mine, back, sizeof mine) == 0);
        if (round % 20 == 0) OK(cuCtxSynchronize());
    }
    OK(cuStreamDestroy_v2(stream));
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    for (size_t i = 0; i < THREADS; i++) TRUE(pthread_create(&all[i], NULL, copier, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) TRUE(pthread_join(all[i], NULL) == 0);
}

/* Contexts that are destroyed with what they have. */
static void contexts(unsigned count) {
    for (unsigned round = 0; round < count; round++) {
        handle other, stream;
        address block;
        OK(cuCtxCreate_v2(&other, 0, 0));
        OK(cuStreamCreate(&stream, 1));
        OK(cuMemAlloc_v2(&block, 4 * N));
        OK(cuMemcpyHtoD_v2(block, from, 4 * N));
        for (int i = 0; i < 2; i++) OK(cuMemcpyHtoDAsync_v2(block, from, 4 * N, stream));
        OK(cuCtxDestroy_v2(other));
    }
}

static void blocked(void *data) {
    (void)data;
    sem_post(&began);
    sem_wait(&go_on);
}

static handle held;

static void *waits_for_copy(void *data) {
    (void)data;
    OK(cuCtxSetCurrent(context));
    /* The copy is done when the context ends, and the context may have ended before the call returns. */
    int code = cuMemcpyDtoHAsync_v2(to, p, 4 * N, held);
    TRUE(code == 0 || code == 709);
    return NULL;
}

static void *destroys(void *data) {
    (void)data;
    OK(cuCtxDestroy_v2(context));
    return NULL;
}

/* A context that is destroyed while a thread waits for a copy. */
static void destroyed_meanwhile(void) {
    pthread_t copying, destroying;
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuMemAlloc_v2(&p, 4 * N));
    OK(cuMemcpyHtoD_v2(p, from, 4 * N));
    OK(cuStreamCreate(&held, 1));
    OK(cuLaunchHostFunc(held, blocked, NULL));
    sem_wait(&began);
    TRUE(pthread_create(&copying, NULL, waits_for_copy, NULL) == 0);
    usleep(50 * 1000);
    TRUE(pthread_create(&destroying, NULL, destroys, NULL) == 0);
    usleep(50 * 1000);
    sem_post(&go_on);
    TRUE(pthread_join(copying, NULL) == 0 && pthread_join(destroying, NULL) == 0);
    WANT(709, cuCtxSynchronize());
}

/* The child has the memory of the parent, and no device. */
static void forks(void) {
    for (unsigned round = 0; round < 3; round++) {
        fill_with(round);
        OK(cuMemcpyHtoD_v2(p, from, 4 * N));
        pid_t child = fork();
        if (child == 0) {
            fill_with(1000);
            for (int i = 0; i < 10; i++) {
                if (cuMemcpyHtoD_v2(p, from, 4 * N) != 3 || cuMemcpyDtoH_v2(to, p, 4 * N) != 3) _exit(9);
            }
            _exit(0);
        }
        int status = -1;
        TRUE(waitpid(child, &status, 0) == child && status == 0);
        OK(cuMemcpyDtoH_v2(to, p, 4 * N));
        expect(round);
    }
}

/* A device that was lost with copies in flight. */
static void lost(void) {
    handle stream, function = add_one();
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemcpyHtoD_v2(p, from, 4 * N));
    OK(launch(function, 16, 64, stream));
    for (int i = 0; i < 10; i++) OK(cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
    WANT(700, cuStreamSynchronize(stream));
    for (int i = 0; i < 2000; i++) {
        WANT(700, cuMemcpyHtoDAsync_v2(p, from, 4 * N, stream));
        WANT(700, cuMemcpyDtoH_v2(to, p, 4 * N));
    }
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    unsigned times = count > 2 ? (unsigned)atoi(words[2]) : 2;
    sem_init(&go_on, 0, 0);
    sem_init(&began, 0, 0);
    context = begin();
    OK(cuMemAlloc_v2(&p, 4 * N * THREADS));
    if (!strcmp(which, "copies")) copies(times);
    else if (!strcmp(which, "gone streams")) gone_streams(times);
    else if (!strcmp(which, "default stream")) default_stream(times);
    else if (!strcmp(which, "queries")) queries(times);
    else if (!strcmp(which, "events")) events(times);
    else if (!strcmp(which, "never waited")) never_waited(times);
    else if (!strcmp(which, "wild")) wild(times);
    else if (!strcmp(which, "rows")) rows(times);
    else if (!strcmp(which, "threads")) threads();
    else if (!strcmp(which, "contexts")) contexts(times);
    else if (!strcmp(which, "destroyed meanwhile")) destroyed_meanwhile();
    else if (!strcmp(which, "forks")) forks();
    else if (!strcmp(which, "lost")) lost();
    else return 1;
    return 0;
}
