/* An NCCL for tests. It logs the arguments of each call and moves nothing. Each function takes what the library's header declares.
 *
 *   FAKE_NCCL_VERSION  22809  what ncclGetVersion answers
 *   FAKE_NCCL_PENDING  3      how often ncclCommGetAsyncError answers ncclInProgress after a call that is not done at once; -1 for ever
 *   FAKE_NCCL_FAILS    name   the call that answers ncclInvalidUsage
 *   FAKE_NCCL_STATE    3      what ncclCommGetAsyncError answers when nothing is pending
 *   FAKE_NCCL_HANGS    name   the call that does not return
 *   FAKE_NCCL_RUNS     1      a broadcast keeps its stream from being done until the communicator is aborted
 *   FAKE_NCCL_ABORTS   3      no ncclCommAbort returns before it was called so often; it logs the milliseconds
 *   FAKE_CUDA_LOG      path   a line for every call: process id, name, arguments in short
 */
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
typedef struct { int rank, ranks, *busy; } *comm_t;
typedef const void *from_t;
typedef void *to_t, *stream_t;

static int pending;

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

static int begun(int status) {
    const char *count = getenv("FAKE_NCCL_PENDING");
    pending = count ? atoi(count) : 0;
    return status ? status : pending ? 7 : 0;
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
    *comm = calloc(1, sizeof **comm);
    (*comm)->rank = rank, (*comm)->ranks = ranks;
    return begun(called("ncclCommInitRankConfig", "%d of %d id %d..%d size %d magic %x version %u blocking %d min %d", rank, ranks,
                        id.internal[0], id.internal[127], (int)config->size, config->magic, config->version, config->blocking,
                        config->minCTAs));
}
int ncclCommGetAsyncError(comm_t comm, int *state) {
    const char *later = getenv("FAKE_NCCL_STATE");
    *state = pending ? 7 : later ? atoi(later) : 0;
    if (pending > 0) pending--;
    return 0;
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
    if (comm->busy) *comm->busy = 0;
    free(comm);
    return status;
}
int ncclGroupStart(void) { return called("ncclGroupStart", ""); }
int ncclGroupEnd(void) { return begun(called("ncclGroupEnd", "")); }
int ncclAllReduce(from_t from, to_t to, size_t count, int type, int op, comm_t comm, stream_t stream) {
    return called("ncclAllReduce", "%p %p %d %d %d", from, to, (int)count, type, op);
}
int ncclReduce(from_t from, to_t to, size_t count, int type, int op, int root, comm_t comm, stream_t stream) {
    return called("ncclReduce", "%p %p %d %d %d %d", from, to, (int)count, type, op, root);
}
int ncclBroadcast(from_t from, to_t to, size_t count, int type, int root, comm_t comm, stream_t stream) {
    if (getenv("FAKE_NCCL_RUNS")) comm->busy = stream, *comm->busy = 1;
    return called("ncclBroadcast", "%p %p %d %d %d", from, to, (int)count, type, root);
}
int ncclAllGather(from_t from, to_t to, size_t count, int type, comm_t comm, stream_t stream) {
    return called("ncclAllGather", "%p %p %d %d", from, to, (int)count, type);
}
int ncclReduceScatter(from_t from, to_t to, size_t count, int type, int op, comm_t comm, stream_t stream) {
    return called("ncclReduceScatter", "%p %p %d %d %d", from, to, (int)count, type, op);
}
int ncclSend(from_t from, size_t count, int type, int peer, comm_t comm, stream_t stream) {
    return called("ncclSend", "%p %d %d %d", from, (int)count, type, peer);
}
int ncclRecv(to_t to, size_t count, int type, int peer, comm_t comm, stream_t stream) {
    return called("ncclRecv", "%p %d %d %d", to, (int)count, type, peer);
}
