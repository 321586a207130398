// Stands in for libcupti: what is submitted between a push and a pop of a number counts as two calls, of a kernel each. As in the real one,
// only calls of the driver that are recorded have the caller's number: without their kind no record says it.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>

enum { DRIVER = 4, KERNEL = 10, NUMBER = 39 };
enum { CALL_BYTES = 40, KERNEL_BYTES = 216, NUMBER_BYTES = 24 };

typedef void (*Request)(uint8_t **, size_t *, size_t *);
typedef void (*Complete)(void *, uint32_t, uint8_t *, size_t, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Request request;
static Complete complete;
static uint8_t *buffer;
static size_t size, used, dropped;
static uint64_t enabled;
static uint32_t calls;
static _Thread_local uint64_t number, began;
static char handle;

static void tell(const char *call, long what) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    fprintf(log, "%d %s %ld\n", (int)getpid(), call, what);
    fclose(log);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + time.tv_nsec;
}

static void give(void) {
    uint8_t *given = buffer;
    size_t bytes = size, valid = used;
    if (!given) return;
    buffer = NULL;
    complete(NULL, 0, given, bytes, valid);
}

static uint8_t *room(size_t bytes) {
    if (buffer && used + bytes > size) give();
    if (!buffer) {
        size_t records = 0;
        used = 0;
        request(&buffer, &size, &records);
    }
    if (!buffer) {
        dropped++;
        return NULL;
    }
    uint8_t *record = buffer + used;
    used += bytes;
    memset(record, 0, bytes);
    return record;
}

static void put(uint8_t *record, size_t at, uint64_t value, size_t bytes) { memcpy(record + at, &value, bytes); }

static void add_call(uint32_t call, uint64_t begin, uint64_t end) {
    uint8_t *record = enabled >> DRIVER & 1 ? room(CALL_BYTES) : NULL;
    if (!record) return;
    put(record, 0, DRIVER, 4);
    put(record, 4, 307, 4);
    put(record, 8, begin, 8);
    put(record, 16, end, 8);
    put(record, 24, getpid(), 4);
    put(record, 32, call, 4);
}

static void add_number(uint32_t call) {
    uint8_t *record = (enabled >> DRIVER & 1) && (enabled >> NUMBER & 1) ? room(NUMBER_BYTES) : NULL;
    if (!record) return;
    put(record, 0, NUMBER, 4);
    put(record, 4, 3, 4);
    put(record, 8, number, 8);
    put(record, 16, call, 4);
}

static void add_kernel(uint32_t call, uint64_t begin, uint64_t end) {
    uint8_t *record = enabled >> KERNEL & 1 ? room(KERNEL_BYTES) : NULL;
    if (!record) return;
    put(record, 0, KERNEL, 4);
    put(record, 16, begin, 8);
    put(record, 24, end, 8);
    put(record, 92, call, 4);
}

int cuptiSubscribe(void **subscriber, void *callback, void *data) {
    if (getenv("FAKE_CUPTI_HELD")) return 39;
    *subscriber = &handle;
    tell("subscribe", 0);
    return 0;
}

int cuptiSubscribe_v2(void **subscriber, void *callback, void *data, void *names) {
    struct { size_t size; const char *own; char *other; size_t bytes; } *told = names;
    if (told->size != 32 || strcmp(told->own, "kiln")) return 1;
    snprintf(told->other, told->bytes, "%s", getenv("FAKE_CUPTI_HELD"));
    return 39;
}

int cuptiUnsubscribe(void *subscriber) {
    tell("unsubscribe", subscriber == &handle);
    return 0;
}

int cuptiActivityRegisterCallbacks(Request asks, Complete gives) {
    request = asks;
    complete = gives;
    return 0;
}

int cuptiActivityEnable(uint32_t kind) {
    if (getenv("FAKE_CUPTI_REFUSES")) return 35;
    enabled |= 1ull << kind;
    tell("enable", kind);
    return 0;
}

int cuptiActivityDisable(uint32_t kind) {
    enabled &= ~(1ull << kind);
    tell("disable", kind);
    return 0;
}

int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
    if (kind != 3) return 1;
    number = id;
    began = now();
    return 0;
}

int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last) {
    *last = number;
    pthread_mutex_lock(&lock);
    uint32_t first = ++calls, second = ++calls;
    uint64_t end = now();
    // One time comes before its number, and one after.
    add_kernel(first, began, began + 1);
    add_number(first);
    add_call(first, began, end);
    add_number(second);
    add_call(second, began, end);
    add_kernel(second, end, end + 1);
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityFlushAll(uint32_t flag) {
    pthread_mutex_lock(&lock);
    give();
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *start, size_t valid, uint8_t **record) {
    uint8_t *next = start;
    if (*record) {
        uint32_t kind;
        memcpy(&kind, *record, 4);
        next = *record + (kind == KERNEL ? KERNEL_BYTES : kind == DRIVER ? CALL_BYTES : NUMBER_BYTES);
    }
    if (next >= start + valid) return 12;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
    *count = dropped;
    return 0;
}

int cuptiGetTimestamp(uint64_t *time) {
    *time = now();
    return 0;
}

int cuptiGetResultString(int status, const char **text) {
    *text = status == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR";
    return 0;
}
