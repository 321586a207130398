/* Memory of a pool in another process. */
#include "driver_api.h"

#include <sys/socket.h>
#include <sys/wait.h>

enum { N = 256, FILE_DESCRIPTOR = 1 };

struct location {
    int kind, number;
};
struct pool_properties {
    int kind, handle_types;
    struct location location;
    void *security;
    size_t most;
    unsigned char rest[56];
};
struct pointer {
    unsigned char bytes[64];
};

int cuMemPoolCreate(handle *pool, const struct pool_properties *properties);
int cuMemPoolExportToShareableHandle(void *out, handle pool, int kind, unsigned long long flags);
int cuMemPoolImportFromShareableHandle(handle *pool, void *shared, int kind, unsigned long long flags);
int cuMemPoolExportPointer(struct pointer *out, address pointer);
int cuMemPoolImportPointer(address *out, handle pool, struct pointer *data);

static int ends[2];
static unsigned back[N];

static void give(const void *bytes, size_t count) { TRUE(write(ends[0], bytes, count) == (ssize_t)count); }

static void get(void *bytes, size_t count) { TRUE(read(ends[0], bytes, count) == (ssize_t)count); }

/* Sends or receives a byte with a file descriptor. */
static int descriptor(int file) {
    char byte = 'x', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (file < 0) {
        TRUE(recvmsg(ends[0], &message, 0) == 1);
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
        return file;
    }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    TRUE(sendmsg(ends[0], &message, 0) == 1);
    return file;
}

static void child(void) {
    handle pool, stream;
    address p, other;
    struct pointer data;
    int file = descriptor(-1);
    begin();
    handle function = add_one();
    OK(cuStreamCreate(&stream, 1));
    WANT(1, cuMemPoolImportFromShareableHandle(&pool, (void *)(size_t)ends[0], FILE_DESCRIPTOR, 0));
    WANT(1, cuMemPoolImportFromShareableHandle(&pool, (void *)(size_t)file, 2, 0));
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(size_t)file, FILE_DESCRIPTOR, 0));
    WANT(1, cuMemAllocFromPoolAsync(&other, 64, pool, stream));
    get(&data, sizeof data);
    OK(cuMemPoolImportPointer(&p, pool, &data));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 4 && back[N - 1] == 4);
    OK(launch(function, p, N, stream));
    WANT(1, cuMemPoolExportPointer(&data, p));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFreeAsync(p, stream));
    WANT(1, cuMemFreeAsync(p, stream));
    OK(cuStreamSynchronize(stream));
    data.bytes[20]++;
    WANT(1, cuMemPoolImportPointer(&p, pool, &data));
    OK(cuMemPoolDestroy(pool));
    give("x", 1);
    exit(0);
}

static void parent(int process) {
    struct pool_properties properties = {.kind = 1, .handle_types = FILE_DESCRIPTOR, .location = {1, 0}};
    handle pool, plain, imported, stream;
    address p, other, again;
    struct pointer data;
    char byte;
    int file = -1, status;
    begin();
    OK(cuStreamCreate(&stream, 1));
    properties.handle_types = 2;
    WANT(1, cuMemPoolCreate(&pool, &properties));
    properties.handle_types = 0;
    OK(cuMemPoolCreate(&plain, &properties));
    WANT(1, cuMemPoolExportToShareableHandle(&file, plain, FILE_DESCRIPTOR, 0));
    properties.handle_types = FILE_DESCRIPTOR;
    OK(cuMemPoolCreate(&pool, &properties));
    WANT(1, cuMemPoolExportToShareableHandle(NULL, pool, FILE_DESCRIPTOR, 0));
    WANT(1, cuMemPoolExportToShareableHandle(&file, pool, FILE_DESCRIPTOR, 1));
    OK(cuMemPoolExportToShareableHandle(&file, pool, FILE_DESCRIPTOR, 0));
    OK(cuMemAllocFromPoolAsync(&other, 64, plain, stream));
    WANT(1, cuMemPoolExportPointer(&data, other));
    OK(cuMemAllocFromPoolAsync(&p, 4 * N, pool, stream));
    OK(cuMemsetD32Async(p, 4, N, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolExportPointer(&data, p));
    OK(cuMemPoolImportFromShareableHandle(&imported, (void *)(size_t)file, FILE_DESCRIPTOR, 0));
    WANT(1, cuMemPoolImportPointer(&again, pool, &data));
    descriptor(file);
    give(&data, sizeof data);
    get(&byte, 1);
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    TRUE(back[0] == 5 && back[N - 1] == 5);
    OK(cuMemsetD32Async(p, 0, N, stream));
    OK(cuMemFreeAsync(p, stream));
    WANT(1, cuMemFreeAsync(p, stream));
    OK(cuMemFreeAsync(other, stream));
    OK(cuCtxSynchronize());
    WANT(1, cuMemcpyDtoH_v2(back, p, 4));
    OK(cuMemPoolDestroy(pool));
    TRUE(waitpid(process, &status, 0) == process && status == 0);
}

int main(void) {
    TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    int process = fork();
    alarm(60);
    if (process == 0) {
        close(ends[0]);
        ends[0] = ends[1];
        child();
    }
    close(ends[1]);
    parent(process);
    return 0;
}
