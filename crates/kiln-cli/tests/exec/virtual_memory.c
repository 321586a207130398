/* Virtual memory management; the first argument says which case. */
#include "driver_api.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "virtual_memory.h"

#define MIB ((size_t)1 << 20)

static const struct properties DEVICE = {.kind = 1, .handle_types = 1, .location = {1, 0}};
static const struct access READ_WRITE = {{1, 0}, 3}, READ_ONLY = {{1, 0}, 1}, NONE = {{1, 0}, 0};
static unsigned words[MIB], back[MIB];

/* A buffer that grows in place, as large models use it. */
static void grows(handle function) {
    address p;
    unsigned long long parts[3], again;
    size_t granularity = 0;
    handle stream;
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemGetAllocationGranularity(&granularity, &DEVICE, 0));
    TRUE(granularity == 2 * MIB);
    OK(cuMemGetAllocationGranularity(&granularity, &DEVICE, 1));
    OK(cuMemAddressReserve(&p, 64 * MIB, 0, 0, 0));
    TRUE(p % (2 * MIB) == 0);
    for (int i = 0; i < 3; i++) {
        OK(cuMemCreate(&parts[i], 2 * MIB, &DEVICE, 0));
        OK(cuMemMap(p + i * 2 * MIB, 2 * MIB, 0, parts[i], 0));
        OK(cuMemSetAccess(p + i * 2 * MIB, 2 * MIB, &READ_WRITE, 1));
        /* The memory lives while it is mapped. */
        OK(cuMemRelease(parts[i]));
    }
    /* Copies, fills and kernels go over the borders of the parts. */
    for (unsigned i = 0; i < MIB; i++) words[i] = i;
    OK(cuMemcpyHtoD_v2(p + MIB, words, sizeof words));
    OK(launch(function, p + MIB, MIB, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(back, p + MIB, sizeof back));
    for (unsigned i = 0; i < MIB; i++) TRUE(back[i] == i + 1);
    OK(cuMemsetD8_v2(p, 1, 6 * MIB));
    /* The same memory at two places. */
    OK(cuMemRetainAllocationHandle(&again, (void *)(size_t)(p + 2 * MIB)));
    OK(cuMemMap(p + 32 * MIB, 2 * MIB, 0, again, 0));
    OK(cuMemSetAccess(p + 32 * MIB, 2 * MIB, &READ_WRITE, 1));
    OK(cuMemsetD32_v2(p + 32 * MIB, 41, 1));
    OK(launch(function, p + 2 * MIB, 1, NULL));
    OK(cuMemcpyDtoH_v2(back, p + 32 * MIB, 4));
    TRUE(back[0] == 42);
    OK(cuMemUnmap(p + 32 * MIB, 2 * MIB));
    OK(cuMemRelease(again));
    OK(cuMemUnmap(p, 6 * MIB));
    OK(cuMemAddressFree(p, 64 * MIB));
    OK(cuStreamDestroy_v2(stream));
}

static void asks(void) {
    address p, hinted, aligned;
    unsigned long long memory, flags = 9;
    struct properties is = {0};
    int number = -1;
    OK(cuMemAddressReserve(&p, 8 * MIB, 0, 0, 0));
    OK(cuMemCreate(&memory, 4 * MIB, &DEVICE, 0));
    OK(cuMemGetAllocationPropertiesFromHandle(&is, memory));
    TRUE(is.kind == 1 && is.handle_types == 1 && is.location.kind == 1 && is.location.number == 0);
    WANT(1, cuPointerGetAttribute(&number, 2, p));
    OK(cuMemMap(p + 2 * MIB, 4 * MIB, 0, memory, 0));
    OK(cuMemGetAccess(&flags, &DEVICE.location, p + 3 * MIB));
    TRUE(flags == 0);
    OK(cuMemSetAccess(p + 2 * MIB, 4 * MIB, &READ_ONLY, 1));
    OK(cuMemGetAccess(&flags, &DEVICE.location, p + 3 * MIB));
    TRUE(flags == 1);
    OK(cuMemSetAccess(p + 2 * MIB, 4 * MIB, &READ_WRITE, 1));
    OK(cuMemGetAccess(&flags, &DEVICE.location, p + 3 * MIB));
    TRUE(flags == 3);
    OK(cuPointerGetAttribute(&number, 2, p + 2 * MIB));
    TRUE(number == 2);
    OK(cuPointerGetAttribute(&number, 9, p + 2 * MIB));
    TRUE(number == 0);
    WANT(1, cuMemGetAccess(&flags, &DEVICE.location, p));
    OK(cuMemAddressReserve(&aligned, 2 * MIB, 64 * MIB, 0, 0));
    TRUE(aligned % (64 * MIB) == 0);
    OK(cuMemAddressFree(aligned, 2 * MIB));
    OK(cuMemAddressReserve(&hinted, 2 * MIB, 0, aligned, 0));
    TRUE(hinted == aligned);
    OK(cuMemAddressFree(hinted, 2 * MIB));
    OK(cuMemUnmap(p + 2 * MIB, 4 * MIB));
    OK(cuMemRelease(memory));
    OK(cuMemAddressFree(p, 8 * MIB));
}

/* What the documentation says is wrong. */
static void refuses(void) {
    address p, q;
    unsigned long long memory, other;
    size_t granularity;
    struct properties wrong = DEVICE;
    struct access elsewhere = {{1, 7}, 3}, unknown = {{1, 0}, 2};
    int file = -1;
    WANT(1, cuMemAddressReserve(NULL, 2 * MIB, 0, 0, 0));
    WANT(1, cuMemAddressReserve(&p, 0, 0, 0, 0));
    WANT(1, cuMemAddressReserve(&p, 100, 0, 0, 0));
    WANT(1, cuMemAddressReserve(&p, 2 * MIB, 3, 0, 0));
    WANT(1, cuMemAddressReserve(&p, 2 * MIB, 0, 0, 1));
    OK(cuMemAddressReserve(&p, 8 * MIB, 0, 0, 0));
    WANT(1, cuMemCreate(&memory, 0, &DEVICE, 0));
    WANT(1, cuMemCreate(&memory, MIB, &DEVICE, 0));
    WANT(1, cuMemCreate(&memory, 2 * MIB, &DEVICE, 1));
    WANT(1, cuMemCreate(&memory, 2 * MIB, NULL, 0));
    WANT(1, cuMemCreate(NULL, 2 * MIB, &DEVICE, 0));
    WANT(2, cuMemCreate(&memory, 512 * 1024 * MIB, &DEVICE, 0));
    wrong.location.number = 9;
    WANT(101, cuMemCreate(&memory, 2 * MIB, &wrong, 0));
    OK(cuMemGetAllocationGranularity(&granularity, &wrong, 0));
    WANT(1, cuMemGetAllocationGranularity(&granularity, &DEVICE, 2));
    wrong = DEVICE;
    wrong.kind = 7;
    WANT(1, cuMemCreate(&memory, 2 * MIB, &wrong, 0));
    OK(cuMemCreate(&memory, 2 * MIB, &DEVICE, 0));
    WANT(1, cuMemMap(p, 2 * MIB, 2 * MIB, memory, 0));
    WANT(1, cuMemMap(p, 4 * MIB, 0, memory, 0));
    WANT(1, cuMemMap(p + 4096, 2 * MIB, 0, memory, 0));
    WANT(1, cuMemMap(p, MIB, 0, memory, 0));
    WANT(1, cuMemMap(p + 8 * MIB, 2 * MIB, 0, memory, 0));
    WANT(1, cuMemMap(p, 2 * MIB, 0, memory + 16, 0));
    WANT(1, cuMemMap(p, 2 * MIB, 0, memory, 1));
    WANT(1, cuMemSetAccess(p, 2 * MIB, &READ_WRITE, 1));
    OK(cuMemMap(p, 2 * MIB, 0, memory, 0));
    WANT(1, cuMemMap(p, 2 * MIB, 0, memory, 0));
    WANT(1, cuMemSetAccess(p, MIB, &READ_WRITE, 1));
    WANT(1, cuMemSetAccess(p, 4 * MIB, &READ_WRITE, 1));
    WANT(1, cuMemSetAccess(p, 2 * MIB, &READ_WRITE, 0));
    WANT(1, cuMemSetAccess(p, 2 * MIB, NULL, 1));
    WANT(1, cuMemSetAccess(p, 2 * MIB, &unknown, 1));
    WANT(101, cuMemSetAccess(p, 2 * MIB, &elsewhere, 1));
    /* Without access copies and fills are refused. */
    WANT(1, cuMemsetD8_v2(p, 0, 16));
    OK(cuMemSetAccess(p, 2 * MIB, &READ_WRITE, 1));
    OK(cuMemsetD8_v2(p, 0, 16));
    WANT(1, cuMemsetD8_v2(p + 2 * MIB - 8, 0, 16));
    WANT(1, cuMemcpyDtoH_v2(back, p + 2 * MIB, 16));
    WANT(1, cuMemUnmap(p, MIB));
    WANT(1, cuMemUnmap(p, 4 * MIB));
    WANT(1, cuMemUnmap(p + 2 * MIB, 2 * MIB));
    WANT(1, cuMemAddressFree(p, 8 * MIB));
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(p, 2 * MIB));
    WANT(1, cuMemUnmap(p, 2 * MIB));
    WANT(1, cuMemAddressFree(p, 4 * MIB));
    WANT(1, cuMemAddressFree(p + 2 * MIB, 6 * MIB));
    WANT(1, cuMemRetainAllocationHandle(&other, (void *)(size_t)p));
    WANT(1, cuMemFree_v2(p));
    OK(cuMemAddressFree(p, 8 * MIB));
    WANT(1, cuMemAddressFree(p, 8 * MIB));
    WANT(1, cuMemExportToShareableHandle(&file, memory, 2, 0));
    WANT(1, cuMemExportToShareableHandle(NULL, memory, 1, 0));
    wrong = DEVICE;
    wrong.handle_types = 0;
    OK(cuMemCreate(&other, 2 * MIB, &wrong, 0));
    WANT(1, cuMemExportToShareableHandle(&file, other, 1, 0));
    WANT(1, cuMemImportFromShareableHandle(&other, (void *)(size_t)0, 1));
    WANT(1, cuMemImportFromShareableHandle(&other, (void *)(size_t)999, 1));
    OK(cuMemRelease(memory));
    WANT(1, cuMemRelease(memory));
    WANT(1, cuMemAlloc_v2(&q, 0));
}

static address mapped(unsigned long long memory, const struct access *access) {
    address p;
    OK(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(p, 2 * MIB, 0, memory, 0));
    if (access) OK(cuMemSetAccess(p, 2 * MIB, access, 1));
    return p;
}

/* A file descriptor that goes to another process, whose writes are seen here. */
static void shares(void) {
    int ends[2], file = -1, status;
    unsigned long long memory, same;
    TRUE(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {{0}};
    char byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int child = fork();
    if (child == 0) {
        TRUE(recvmsg(ends[1], &message, 0) == 1);
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
        begin();
        OK(cuMemImportFromShareableHandle(&memory, (void *)(size_t)file, 1));
        address p = mapped(memory, &READ_WRITE);
        OK(cuMemcpyDtoH_v2(back, p, 8));
        TRUE(back[0] == 5 && back[1] == 5);
        OK(cuMemsetD32_v2(p, 6, 2));
        OK(cuCtxSynchronize());
        exit(0);
    }
    begin();
    OK(cuMemCreate(&memory, 2 * MIB, &DEVICE, 0));
    address p = mapped(memory, &READ_WRITE);
    OK(cuMemsetD32_v2(p, 5, 2));
    OK(cuCtxSynchronize());
    OK(cuMemExportToShareableHandle(&file, memory, 1, 0));
    message.msg_controllen = sizeof control.room;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    TRUE(sendmsg(ends[0], &message, 0) == 1);
    TRUE(waitpid(child, &status, 0) == child && status == 0);
    OK(cuMemcpyDtoH_v2(back, p, 8));
    TRUE(back[0] == 6 && back[1] == 6);
    /* In the same process it is the same memory. */
    OK(cuMemImportFromShareableHandle(&same, (void *)(size_t)file, 1));
    address q = mapped(same, &READ_WRITE);
    OK(cuMemcpyDtoH_v2(back, q, 8));
    TRUE(back[0] == 6);
    close(file);
}

int main(int count, char **which) {
    const char *name = count > 1 ? which[1] : "";
    unsigned long long memory;
    if (!strcmp(name, "shares")) {
        shares();
        return 0;
    }
    begin();
    handle function = add_one();
    if (!strcmp(name, "grows")) grows(function);
    else if (!strcmp(name, "asks")) asks();
    else if (!strcmp(name, "refuses")) refuses();
    else {
        OK(cuMemCreate(&memory, 2 * MIB, &DEVICE, 0));
        const struct access *access = !strcmp(name, "no access") ? NULL : &READ_WRITE;
        address p = mapped(memory, access);
        if (access) OK(cuMemsetD8_v2(p, 0, 2 * MIB));
        if (!strcmp(name, "read only")) {
            OK(cuCtxSynchronize());
            OK(cuMemSetAccess(p, 2 * MIB, &READ_ONLY, 1));
        }
        if (!strcmp(name, "taken away")) {
            OK(cuCtxSynchronize());
            OK(cuMemSetAccess(p, 2 * MIB, &NONE, 1));
        }
        unsigned words = !strcmp(name, "outside") ? MIB / 2 + 1 : 64;
        OK(launch(function, p, words, NULL));
        if (!strcmp(name, "in use")) cuMemUnmap(p, 2 * MIB);
        if (!strcmp(name, "right")) {
            OK(cuCtxSynchronize());
            OK(cuMemUnmap(p, 2 * MIB));
            return 0;
        }
        WANT(700, cuCtxSynchronize());
    }
    return 0;
}
