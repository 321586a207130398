/* Memory: pages are files in memory, everything else is allocated from the host. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fake.h"

#define BLOCKS 256

static struct { Address address; size_t bytes; int pooled; } blocks[BLOCKS];
static struct { char *start; size_t bytes; } registered[BLOCKS];
static struct { char *start; size_t bytes; } ranges[BLOCKS];
static size_t used;

static int find_block(Address address) {
    for (int at = 0; at < BLOCKS; at++)
        if (blocks[at].bytes && blocks[at].address == address) return at;
    return -1;
}

static Status take(Address *address, size_t bytes, int pooled) {
    if (!bytes) return INVALID_VALUE;
    if (bytes > DEVICE_BYTES - used) return OUT_OF_MEMORY;
    for (int at = 0; at < BLOCKS; at++) {
        if (blocks[at].bytes) continue;
        blocks[at].address = *address = (Address)(uintptr_t)aligned_alloc(256, (bytes + 255) & ~(size_t)255);
        blocks[at].bytes = bytes;
        blocks[at].pooled = pooled;
        used += bytes;
        return SUCCESS;
    }
    return OUT_OF_MEMORY;
}

static Status give(Address address) {
    int at = find_block(address);
    if (at < 0) return INVALID_VALUE;
    used -= blocks[at].bytes;
    free((void *)(uintptr_t)blocks[at].address);
    blocks[at].bytes = 0;
    return SUCCESS;
}

Status cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    ENTER_CONTEXT("");
    *free_bytes = DEVICE_BYTES - used;
    *total = DEVICE_BYTES;
    return SUCCESS;
}

Status cuMemAlloc_v2(Address *address, size_t bytes) {
    ENTER_CONTEXT("%zu", bytes);
    return take(address, bytes, 0);
}

Status cuMemFree_v2(Address address) {
    ENTER_CONTEXT("%llx", (unsigned long long)address);
    return give(address);
}

Status cuMemPoolCreate(void **pool, const void *properties) {
    ENTER_CONTEXT("%d", *(const int *)properties);
    *pool = malloc(8);
    return SUCCESS;
}

Status cuMemPoolDestroy(void *pool) {
    ENTER_CONTEXT("");
    free(pool);
    return SUCCESS;
}

Status cuMemPoolSetAttribute(void *pool, unsigned attribute, void *value) {
    (void)pool;
    ENTER_CONTEXT("%u %llu", attribute, *(unsigned long long *)value);
    return attribute == 4 ? SUCCESS : INVALID_VALUE;
}

Status cuMemPoolTrimTo(void *pool, size_t bytes) {
    (void)pool;
    ENTER_CONTEXT("%zu", bytes);
    return SUCCESS;
}

Status cuMemAllocFromPoolAsync(Address *address, size_t bytes, void *pool, struct Stream *stream) {
    (void)pool, (void)stream;
    ENTER_CONTEXT("%zu", bytes);
    return take(address, bytes, 1);
}

Status cuMemFreeAsync(Address address, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%llx", (unsigned long long)address);
    int at = find_block(address);
    return at < 0 || !blocks[at].pooled ? INVALID_VALUE : give(address);
}

Status cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
    ENTER_CONTEXT("%zu %u", bytes, flags);
    if (bytes > DEVICE_BYTES) return OUT_OF_MEMORY;
    *start = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    memset(*start, 0x5a, bytes);
    return SUCCESS;
}

Status cuMemFreeHost(void *start) {
    ENTER_CONTEXT("");
    free(start);
    return SUCCESS;
}

Status cuMemHostRegister_v2(char *start, size_t bytes, unsigned flags) {
    ENTER_CONTEXT("%zu %u", bytes, flags);
    for (int at = 0; at < BLOCKS; at++)
        if (registered[at].bytes && start < registered[at].start + registered[at].bytes &&
            registered[at].start < start + bytes)
            return HOST_REGISTERED;
    for (int at = 0; at < BLOCKS; at++) {
        if (registered[at].bytes) continue;
        registered[at].start = start;
        registered[at].bytes = bytes;
        return SUCCESS;
    }
    return OUT_OF_MEMORY;
}

Status cuMemHostUnregister(char *start) {
    ENTER_CONTEXT("");
    for (int at = 0; at < BLOCKS; at++) {
        if (!registered[at].bytes || registered[at].start != start) continue;
        registered[at].bytes = 0;
        return SUCCESS;
    }
    return INVALID_VALUE;
}

Status cuMemGetAllocationGranularity(size_t *bytes, const void *properties, unsigned which) {
    (void)properties;
    ENTER("%u", which);
    *bytes = PAGE_GRANULARITY;
    return SUCCESS;
}

Status cuMemAddressReserve(Address *address, size_t bytes, size_t alignment, Address wanted, unsigned long long flags) {
    ENTER_CONTEXT("%zu %zu %llx %llu", bytes, alignment, (unsigned long long)wanted, flags);
    if (!bytes || bytes % PAGE_GRANULARITY) return INVALID_VALUE;
    void *start = mmap((void *)(uintptr_t)wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return OUT_OF_MEMORY;
    *address = (Address)(uintptr_t)start;
    for (int at = 0; at < BLOCKS; at++) {
        if (ranges[at].bytes) continue;
        ranges[at].start = start;
        ranges[at].bytes = bytes;
        return SUCCESS;
    }
    return OUT_OF_MEMORY;
}

Status cuMemAddressFree(Address address, size_t bytes) {
    ENTER_CONTEXT("%llx %zu", (unsigned long long)address, bytes);
    for (int at = 0; at < BLOCKS; at++) {
        if (!ranges[at].bytes || (Address)(uintptr_t)ranges[at].start != address) continue;
        if (ranges[at].bytes != bytes) return INVALID_VALUE;
        ranges[at].bytes = 0;
        munmap((void *)(uintptr_t)address, bytes);
        return SUCCESS;
    }
    return INVALID_VALUE;
}

/* A handle to pages is a descriptor, plus one. */
Status cuMemCreate(unsigned long long *handle, size_t bytes, const void *properties, unsigned long long flags) {
    ENTER_CONTEXT("%zu %d %llu", bytes, ((const int *)properties)[1], flags);
    if (bytes > DEVICE_BYTES - used) return OUT_OF_MEMORY;
    int file = memfd_create("pages", 0);
    if (file < 0 || ftruncate(file, (off_t)bytes)) return OUT_OF_MEMORY;
    *handle = (unsigned long long)file + 1;
    return SUCCESS;
}

Status cuMemRelease(unsigned long long handle) {
    ENTER_CONTEXT("%llu", handle);
    return close((int)handle - 1) ? INVALID_VALUE : SUCCESS;
}

Status cuMemExportToShareableHandle(int *descriptor, unsigned long long handle, unsigned kind, unsigned long long flags) {
    ENTER_CONTEXT("%llu %u %llu", handle, kind, flags);
    *descriptor = dup((int)handle - 1);
    return *descriptor < 0 ? INVALID_VALUE : SUCCESS;
}

Status cuMemImportFromShareableHandle(unsigned long long *handle, void *descriptor, unsigned kind) {
    ENTER_CONTEXT("%u", kind);
    struct stat info;
    int file = (int)(intptr_t)descriptor;
    if (fstat(file, &info) || !S_ISREG(info.st_mode)) return INVALID_VALUE;
    *handle = (unsigned long long)dup(file) + 1;
    return SUCCESS;
}

Status cuMemMap(Address address, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags) {
    ENTER_CONTEXT("%llx %zu %zu %llu %llu", (unsigned long long)address, bytes, offset, handle, flags);
    struct stat info;
    int file = (int)handle - 1;
    if (offset || fstat(file, &info) || bytes > (size_t)info.st_size) return INVALID_VALUE;
    void *start = mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0);
    return start == MAP_FAILED ? INVALID_VALUE : SUCCESS;
}

Status cuMemUnmap(Address address, size_t bytes) {
    ENTER_CONTEXT("%llx %zu", (unsigned long long)address, bytes);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void *start = mmap((void *)(uintptr_t)address, bytes, PROT_NONE, flags, -1, 0);
    return start == MAP_FAILED ? INVALID_VALUE : SUCCESS;
}

Status cuMemSetAccess(Address address, size_t bytes, const int *description, size_t count) {
    ENTER_CONTEXT("%llx %zu %d %zu", (unsigned long long)address, bytes, description[2], count);
    int protection = description[2] == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
    return mprotect((void *)(uintptr_t)address, bytes, protection) ? INVALID_VALUE : SUCCESS;
}
