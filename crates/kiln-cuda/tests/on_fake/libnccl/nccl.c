/* An NCCL for tests. It logs the arguments of each call and moves nothing. Each function takes what the library's header declares. Its calls block as those of
 * NCCL do: one that waits for other ranks returns when the communicator is aborted by another thread. A communicator that is aborted in a group is freed at the end of
 * the group. One that is freed while a call is inside, or used afterwards, is logged as ncclMisused.
 *
 *   FAKE_NCCL_VERSION  22809  what ncclGetVersion answers
 *   FAKE_NCCL_FAILS    name   the call that answers ncclInvalidUsage
 *   FAKE_NCCL_STATE    3      what ncclCommGetAsyncError answers
 *   FAKE_NCCL_WAITS    name   the call that waits for other ranks, until its communicator is aborted
 *   FAKE_NCCL_LATE     50     milliseconds that ncclCommInitRankConfig takes
 *   FAKE_NCCL_HANGS    name   the call that does not return
 *   FAKE_NCCL_RUNS     1      a broadcast keeps its stream from being done until the communicator is aborted
 *   FAKE_NCCL_ABORTS   3      no ncclCommAbort returns before it was called so often; it logs the milliseconds
 *   FAKE_CUDA_LOG      path   a line for every call: process id, name, arguments in short
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct { char internal[128]; } ncclUniqueId;
typedef struct {
    size_t size;
    unsigned int magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare;
} ncclConfig_t;
/* `busy` is the first field of a stream of the fake libcuda. */
typedef struct comm { int rank, ranks, *busy, inside, is_aborted, is_freed; struct comm *next; } *comm_t;
typedef const void *from_t;
typedef void *to_t, *stream_t;

static __thread int depth;
static __thread comm_t ended;

static int called(const char *name, const char *format, ...) {
    const char *path = getenv("FAKE_CUDA_LOG"), *fails = getenv("FAKE_NCCL_FAILS"), *hangs = getenv("FAKE_NCCL_HANGS");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        va_list arguments;
        fprintf(log, "%d %s ", (int)getpid(), name);
        va_start(arguments, format);
        vfprintf(log, format, arguments);
        va_end(arguments);
        fprintf(log, "\n");
        fclose(log);
    }
    if (hangs && strcmp(hangs, name) == 0) sleep(1000);
    return fails && strcmp(fails, name) == 0 ? 5 : 0;
}

static int is(const char *variable, const char *name) {
    const char *value = getenv(variable);
    return value && strcmp(value, name) == 0;
}

/* A call of a communicator. */
static int inside(comm_t comm, const char *name, int status) {
    if (comm->is_freed) called("ncclMisused", "%s after it was freed", name);
    __atomic_add_fetch(&comm->inside, 1, __ATOMIC_SEQ_CST);
    if (is("FAKE_NCCL_WAITS", name)) {
        while (!__atomic_load_n(&comm->is_aborted, __ATOMIC_SEQ_CST)) usleep(100);
        /* It still reads the communicator. */
        usleep(20000);
        status = 3;
    }
    if (comm->is_freed) called("ncclMisused", "%s while it was freed", name);
    __atomic_sub_fetch(&comm->inside, 1, __ATOMIC_SEQ_CST);
    return status;
}

static void freed(comm_t comm) {
    if (__atomic_load_n(&comm->inside, __ATOMIC_SEQ_CST)) called("ncclMisused", "freed while a call is inside");
    comm->is_freed = 1;
}

int ncclGetVersion(int *version) {
    const char *text = getenv("FAKE_NCCL_VERSION");
    *version = text ? atoi(text) : 22809;
    return 0;
}
int ncclGetUniqueId(ncclUniqueId *id) {
    for (int at = 0; at < 128; at++) id->internal[at] = at;
    return called("ncclGetUniqueId", "");
}
const char *ncclGetErrorString(int status) { return status == 5 ? "invalid usage" : "another error"; }
const char *ncclGetLastError(comm_t comm) { return "what the log says"; }
int ncclCommInitRankConfig(comm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
    const char *late = getenv("FAKE_NCCL_LATE");
    comm_t made = calloc(1, sizeof *made);
    made->rank = rank, made->ranks = ranks;
    __atomic_store_n(comm, made, __ATOMIC_SEQ_CST);
    int status = called("ncclCommInitRankConfig", "%d of %d id %d..%d size %d magic %x version %u blocking %d min %d", rank, ranks,
                        id.internal[0], id.internal[127], (int)config->size, config->magic, config->version, config->blocking,
                        config->minCTAs);
    if (late) usleep(1000 * atoi(late));
    return inside(made, "ncclCommInitRankConfig", status);
}
int ncclCommGetAsyncError(comm_t comm, int *state) {
    const char *later = getenv("FAKE_NCCL_STATE");
    char thread[32] = "";
    pthread_getname_np(pthread_self(), thread, sizeof thread);
    *state = later ? atoi(later) : 0;
    return inside(comm, "ncclCommGetAsyncError", called("ncclCommGetAsyncError", "%s", thread));
}
int ncclCommAbort(comm_t comm) {
    static int aborts;
    const char *all = getenv("FAKE_NCCL_ABORTS");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int status = called("ncclCommAbort", "%lld", now.tv_sec * 1000LL + now.tv_nsec / 1000000);
    __atomic_add_fetch(&aborts, 1, __ATOMIC_SEQ_CST);
    while (all && __atomic_load_n(&aborts, __ATOMIC_SEQ_CST) < atoi(all)) usleep(100);
    if (all) called("ncclCommAborted", "");
    __atomic_store_n(&comm->is_aborted, 1, __ATOMIC_SEQ_CST);
    if (comm->busy) *comm->busy = 0;
    if (depth) comm->next = ended, ended = comm;
    else freed(comm);
    return status;
}
int ncclGroupStart(void) { return depth++, called("ncclGroupStart", ""); }
int ncclGroupEnd(void) {
    int status = called("ncclGroupEnd", "");
    if (--depth == 0)
        for (; ended; ended = ended->next) freed(ended);
    return status;
}
int ncclAllReduce(from_t from, to_t to, size_t count, int type, int op, comm_t comm, stream_t stream) {
    return inside(comm, "ncclAllReduce", called("ncclAllReduce", "%p %p %d %d %d", from, to, (int)count, type, op));
}
int ncclReduce(from_t from, to_t to, size_t count, int type, int op, int root, comm_t comm, stream_t stream) {
    return inside(comm, "ncclReduce", called("ncclReduce", "%p %p %d %d %d %d", from, to, (int)count, type, op, root));
}
int ncclBroadcast(from_t from, to_t to, size_t count, int type, int root, comm_t comm, stream_t stream) {
    if (getenv("FAKE_NCCL_RUNS")) comm->busy = stream, *comm->busy = 1;
    return inside(comm, "ncclBroadcast", called("ncclBroadcast", "%p %p %d %d %d", from, to, (int)count, type, root));
}
int ncclAllGather(from_t from, to_t to, size_t count, int type, comm_t comm, stream_t stream) {
    return inside(comm, "ncclAllGather", called("ncclAllGather", "%p %p %d %d", from, to, (int)count, type));
}
int ncclReduceScatter(from_t from, to_t to, size_t count, int type, int op, comm_t comm, stream_t stream) {
    return inside(comm, "ncclReduceScatter", called("ncclReduceScatter", "%p %p %d %d %d", from, to, (int)count, type, op));
}
int ncclSend(from_t from, size_t count, int type, int peer, comm_t comm, stream_t stream) {
    return inside(comm, "ncclSend", called("ncclSend", "%p %d %d %d", from, (int)count, type, peer));
}
int ncclRecv(to_t to, size_t count, int type, int peer, comm_t comm, stream_t stream) {
    return inside(comm, "ncclRecv", called("ncclRecv", "%p %d %d %d", to, (int)count, type, peer));
}
