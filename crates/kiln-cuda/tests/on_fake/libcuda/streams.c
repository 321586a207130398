/* Streams and events. Work is done when it is given; a stalled stream only says that it is not. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fake.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

Status cuStreamCreateWithPriority(struct Stream **stream, unsigned flags, int priority) {
    ENTER_CONTEXT("%u %d", flags, priority);
    *stream = calloc(1, sizeof **stream);
    (*stream)->priority = priority;
    return SUCCESS;
}

/* Not given back, because events recorded on it still ask how far it was. */
Status cuStreamDestroy_v2(struct Stream *stream) {
    ENTER_CONTEXT("");
    stream->stalled = 0;
    return SUCCESS;
}

Status cuStreamQuery(struct Stream *stream) {
    ENTER_CONTEXT("");
    if (fault_on_look()) return fault_on_look();
    return stream->stalled ? NOT_READY : SUCCESS;
}

Status cuStreamWaitEvent(struct Stream *stream, struct Event *event, unsigned flags) {
    ENTER_CONTEXT("%u %d", flags, event->recorded);
    (void)stream;
    return SUCCESS;
}

Status cuEventCreate(struct Event **event, unsigned flags) {
    ENTER_CONTEXT("%u", flags);
    *event = calloc(1, sizeof **event);
    (*event)->timed = !(flags & 2);
    return SUCCESS;
}

Status cuEventDestroy_v2(struct Event *event) {
    ENTER_CONTEXT("");
    free(event);
    return SUCCESS;
}

Status cuEventRecord(struct Event *event, struct Stream *stream) {
    ENTER_CONTEXT("");
    event->recorded = 1;
    event->stream = stream;
    event->at = seconds();
    return SUCCESS;
}

Status cuEventQuery(struct Event *event) {
    ENTER_CONTEXT("");
    if (fault_on_look()) return fault_on_look();
    return event->recorded && event->stream->stalled ? NOT_READY : SUCCESS;
}

Status cuEventElapsedTime(float *milliseconds, struct Event *from, struct Event *to) {
    ENTER_CONTEXT("");
    if (!from->timed || !to->timed || !from->recorded || !to->recorded) return INVALID_HANDLE;
    *milliseconds = (float)((to->at - from->at) * 1e3);
    return SUCCESS;
}

static Status copy(Address to, Address from, size_t bytes) {
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%zu", bytes);
    return copy(to, (Address)(uintptr_t)from, bytes);
}

Status cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%zu", bytes);
    return copy((Address)(uintptr_t)to, from, bytes);
}

Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%zu", bytes);
    return copy(to, from, bytes);
}

Status cuMemcpyAsync(Address to, Address from, size_t bytes, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%zu", bytes);
    return copy(to, from, bytes);
}

Status cuMemcpyPeerAsync(Address to, uintptr_t to_context, Address from, uintptr_t from_context, size_t bytes,
                         struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%lx %lx %zu", (unsigned long)to_context, (unsigned long)from_context, bytes);
    return copy(to, from, bytes);
}

/* A function of the host is not called behind a failure; a callback is, and is told of it. */
Status cuLaunchHostFunc(struct Stream *stream, void (*function)(void *), void *data) {
    (void)stream;
    ENTER_CONTEXT("");
    if (!fault_on_look()) function(data);
    return SUCCESS;
}

Status cuStreamAddCallback(struct Stream *stream, void (*callback)(struct Stream *, Status, void *), void *data, unsigned flags) {
    ENTER_CONTEXT("%u", flags);
    callback(stream, fault_on_look(), data);
    return SUCCESS;
}

Status cuMemsetD8Async(Address to, unsigned char value, size_t count, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%u %zu", value, count);
    memset((void *)(uintptr_t)to, value, count);
    return SUCCESS;
}

Status cuMemsetD16Async(Address to, unsigned short value, size_t count, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%u %zu", value, count);
    for (size_t at = 0; at < count; at++) ((unsigned short *)(uintptr_t)to)[at] = value;
    return SUCCESS;
}

Status cuMemsetD32Async(Address to, unsigned value, size_t count, struct Stream *stream) {
    (void)stream;
    ENTER_CONTEXT("%u %zu", value, count);
    for (size_t at = 0; at < count; at++) ((unsigned *)(uintptr_t)to)[at] = value;
    return SUCCESS;
}
