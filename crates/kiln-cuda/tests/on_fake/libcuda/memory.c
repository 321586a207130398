/* Memory: pages are files in memory, everything else is allocated from the host. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fake.h"

#define BLOCKS 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
    Status status = OUT_OF_MEMORY;
    if (!bytes) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < BLOCKS && bytes <= DEVICE_BYTES - used; at++) {
        if (blocks[at].bytes) continue;
        blocks[at].address = *address = (Address)(uintptr_t)aligned_alloc(256, (bytes + 255) & ~(size_t)255);
        blocks[at].bytes = bytes;
        blocks[at].pooled = pooled;
        used += bytes;
        status = SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Takes a block back, from the pool or from the device; the device takes pool memory too. */
static Status give(Address address, int only_pooled) {
    Status status = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int at = find_block(address);
    if (at >= 0 && (blocks[at].pooled || !only_pooled)) {
        used -= blocks[at].bytes;
        free((void *)(uintptr_t)blocks[at].address);
        blocks[at].bytes = 0;
        status = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return status;
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
    return give(address, 0);
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
    return give(address, 1);
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
    /* NVIDIA's waits for all work of the context. */
    usleep(1000 * (unsigned)number_from_environment("FAKE_CUDA_FREE_HOST_MS", 0));
    free(start);
    return SUCCESS;
}

Status cuMemHostRegister_v2(char *start, size_t bytes, unsigned flags) {
    ENTER_CONTEXT("%zu %u", bytes, flags);
    Status status = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    int free_place = -1;
    for (int at = 0; at < BLOCKS; at++) {
        char *other = registered[at].start;
        if (!registered[at].bytes) free_place = at;
        else if (start < other + registered[at].bytes && other < start + bytes) status = HOST_REGISTERED;
    }
    if (free_place >= 0 && status != HOST_REGISTERED) {
        registered[free_place].start = start;
        registered[free_place].bytes = bytes;
        status = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

Status cuMemHostUnregister(char *start) {
    ENTER_CONTEXT("");
    Status status = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < BLOCKS; at++) {
        if (!registered[at].bytes || registered[at].start != start) continue;
        registered[at].bytes = 0;
        status = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

Status cuMemGetAllocationGranularity(size_t *bytes, const void *properties, unsigned which) {
    (void)properties;
    ENTER("%u", which);
    *bytes = PAGE_GRANULARITY;
    return SUCCESS;
}

/* Ranges of at least this size have addresses that do not depend on the process. */
#define LARGE_RANGE (1ull << 30)
static unsigned long long next_large_range = 16ull << 40;

static int note_range(char *start, size_t bytes) {
    int noted = 0;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < BLOCKS && !noted; at++) {
        if (ranges[at].bytes) continue;
        ranges[at].start = start;
        ranges[at].bytes = bytes;
        noted = 1;
    }
    pthread_mutex_unlock(&lock);
    return noted;
}

static int forget_range(char *start, size_t bytes) {
    int forgotten = 0;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < BLOCKS; at++) {
        if (ranges[at].start != start || ranges[at].bytes != bytes) continue;
        ranges[at].bytes = 0;
        forgotten = 1;
    }
    pthread_mutex_unlock(&lock);
    return forgotten;
}

Status cuMemAddressReserve(Address *address, size_t bytes, size_t alignment, Address wanted, unsigned long long flags) {
    ENTER_CONTEXT("%zu %zu %llx %llu", bytes, alignment, (unsigned long long)wanted, flags);
    if (!bytes || bytes % PAGE_GRANULARITY) return INVALID_VALUE;
    int flags_of_map = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t granule = alignment > PAGE_GRANULARITY ? alignment : PAGE_GRANULARITY;
    /* What fits into the rest of a block goes there, whatever the hint says. */
    if (bytes < ADDRESS_BLOCK && granule <= ADDRESS_BLOCK) wanted = 0;
    /* A large range lies at the same addresses in every process, away from those that the system places at random. */
    if (!wanted && bytes >= LARGE_RANGE) wanted = (Address)__atomic_fetch_add(&next_large_range, bytes + LARGE_RANGE, __ATOMIC_RELAXED);
    char *start = mmap((void *)(uintptr_t)wanted, bytes, PROT_NONE, flags_of_map, -1, 0);
    if (start != MAP_FAILED && (uintptr_t)start % granule) {
        /* Once more with room to cut off what is not aligned. */
        munmap(start, bytes);
        start = mmap(NULL, bytes + granule, PROT_NONE, flags_of_map, -1, 0);
        if (start != MAP_FAILED) {
            char *aligned = start + (granule - (uintptr_t)start % granule) % granule;
            if (aligned > start) munmap(start, (size_t)(aligned - start));
            munmap(aligned + bytes, (size_t)(start + granule - aligned));
            start = aligned;
        }
    }
    if (start == MAP_FAILED) return OUT_OF_MEMORY;
    *address = (Address)(uintptr_t)start;
    return note_range(start, bytes) ? SUCCESS : OUT_OF_MEMORY;
}

Status cuMemAddressFree(Address address, size_t bytes) {
    ENTER_CONTEXT("%llx %zu", (unsigned long long)address, bytes);
    if (!forget_range((char *)(uintptr_t)address, bytes)) return INVALID_VALUE;
    munmap((void *)(uintptr_t)address, bytes);
    return SUCCESS;
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
