/* Streams, events, host functions. */
#include "answers.h"

void streams(void) {
    handle stream = NULL, other = NULL, context = begin(), found = NULL;
    unsigned flags = 77;
    int priority = 77;
    unsigned long long id = 0, second = 0;
    CODE(cuStreamCreate(NULL, 0));
    CODE(cuStreamCreate(&stream, 2));
    CODE(cuStreamCreate(&stream, 0x100));
    CODE(cuStreamCreate(&stream, 1));
    CODE(cuStreamGetFlags(stream, &flags));
    value("not blocking", flags);
    CODE(cuStreamGetFlags(NULL, &flags));
    value("the default stream", flags);
    CODE(cuStreamGetFlags(stream, NULL));
    CODE(cuStreamGetPriority(stream, &priority));
    value("its priority", priority);
    CODE(cuStreamGetPriority(stream, NULL));
    CODE(cuStreamCreateWithPriority(&other, 1, -1));
    CODE(cuStreamGetPriority(other, &priority));
    value("a priority of -1", priority);
    CODE(cuStreamDestroy_v2(other));
    CODE(cuStreamCreateWithPriority(&other, 0, -1000));
    CODE(cuStreamGetPriority(other, &priority));
    value("a priority of -1000", priority);
    CODE(cuStreamGetFlags(other, &flags));
    value("blocking", flags);
    CODE(cuStreamDestroy_v2(other));
    CODE(cuStreamCreateWithPriority(&other, 0, 1000));
    CODE(cuStreamGetPriority(other, &priority));
    value("a priority of 1000", priority);
    CODE(cuStreamCreateWithPriority(NULL, 0, 0));
    CODE(cuStreamCreateWithPriority(&(handle){0}, 8, 0));
    CODE(cuStreamGetCtx(stream, &found));
    value("its context", found == context);
    CODE(cuStreamGetCtx(NULL, &found));
    value("the context of the default stream", found == context);
    CODE(cuStreamGetCtx(stream, NULL));
    CODE(cuStreamGetId(stream, &id));
    CODE(cuStreamGetId(other, &second));
    value("different ids", id != second);
    CODE(cuStreamGetId(stream, NULL));
    CODE(cuStreamQuery(stream));
    CODE(cuStreamQuery(NULL));
    CODE(cuStreamQuery((handle)1));
    CODE(cuStreamQuery((handle)2));
    CODE(cuStreamSynchronize(stream));
    CODE(cuStreamSynchronize((handle)1));
    CODE(cuStreamSynchronize((handle)2));
    CODE(cuStreamDestroy_v2(NULL));
    CODE(cuStreamDestroy_v2((handle)1));
    CODE(cuStreamDestroy_v2((handle)2));
    CODE(cuStreamDestroy_v2(other));
    CODE(cuStreamDestroy_v2(stream));
}

void destroyed_stream(void) {
    handle stream = NULL;
    address p = 0;
    begin();
    NEED(cuMemAlloc_v2(&p, 256));
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuMemsetD8Async(p, 0, 256, stream));
    CODE(cuStreamDestroy_v2(stream));
    CODE(cuStreamQuery(stream));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemsetD8Async(p, 0, 256, stream));
    CODE(cuStreamDestroy_v2(stream));
    CODE(cuCtxSynchronize());
}

void events(void) {
    handle event = NULL, plain = NULL, last = NULL, stream = NULL;
    float time = -1;
    begin();
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuEventCreate(NULL, 0));
    CODE(cuEventCreate(&event, 0x100));
    CODE(cuEventCreate(&event, 4));
    CODE(cuEventCreate(&event, 0));
    CODE(cuEventCreate(&last, 1));
    CODE(cuEventCreate(&plain, 2));
    NAMED("query before a record", cuEventQuery(event));
    NAMED("wait before a record", cuEventSynchronize(event));
    NAMED("a stream waits before a record", cuStreamWaitEvent(stream, event, 0));
    NAMED("time before a record", cuEventElapsedTime(&time, event, last));
    CODE(cuEventRecord(event, stream));
    NAMED("time of one that was not recorded", cuEventElapsedTime(&time, event, last));
    CODE(cuEventRecord(last, stream));
    CODE(cuEventRecord(plain, stream));
    CODE(cuEventSynchronize(last));
    CODE(cuEventQuery(event));
    CODE(cuEventElapsedTime(&time, event, last));
    value("not before", time >= 0);
    CODE(cuEventElapsedTime(&time, event, event));
    value("no time", time == 0);
    NAMED("time without timing", cuEventElapsedTime(&time, event, plain));
    CODE(cuEventElapsedTime(NULL, event, last));
    CODE(cuEventElapsedTime(&time, NULL, last));
    CODE(cuEventElapsedTime(&time, event, NULL));
    CODE(cuEventRecord(NULL, stream));
    CODE(cuEventQuery(NULL));
    CODE(cuEventSynchronize(NULL));
    CODE(cuEventDestroy_v2(NULL));
    CODE(cuStreamWaitEvent(stream, NULL, 0));
    CODE(cuStreamWaitEvent(stream, event, 2));
    CODE(cuStreamWaitEvent(NULL, event, 0));
    CODE(cuStreamWaitEvent(stream, event, 0));
    CODE(cuEventRecordWithFlags(event, stream, 0));
    CODE(cuEventRecordWithFlags(event, stream, 7));
    CODE(cuEventRecord(event, NULL));
    CODE(cuEventRecord(event, (handle)1));
    CODE(cuEventRecord(event, (handle)2));
    CODE(cuStreamSynchronize(stream));
    CODE(cuEventDestroy_v2(event));
    CODE(cuEventDestroy_v2(last));
    CODE(cuEventDestroy_v2(plain));
}

void destroyed_event(void) {
    handle event = NULL;
    begin();
    NEED(cuEventCreate(&event, 0));
    NEED(cuEventRecord(event, NULL));
    CODE(cuEventDestroy_v2(event));
    CODE(cuEventQuery(event));
    CODE(cuEventRecord(event, NULL));
    CODE(cuEventDestroy_v2(event));
}

static int calls, nested = -1;
static int said = -1;

static void count(void *data) {
    calls += *(int *)data;
    nested = cuStreamQuery(NULL);
}

static void told(handle stream, int code, void *data) {
    (void)stream;
    calls += *(int *)data;
    said = code;
}

void host_functions(void) {
    handle stream = NULL;
    int seven = 7;
    begin();
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuLaunchHostFunc(stream, count, &seven));
    CODE(cuLaunchHostFunc(stream, count, &seven));
    CODE(cuStreamSynchronize(stream));
    value("called twice", calls);
    value("a call of the driver inside", nested);
    CODE(cuLaunchHostFunc(stream, NULL, &seven));
    CODE(cuStreamAddCallback(stream, told, &seven, 0));
    CODE(cuStreamSynchronize(stream));
    value("and a third time", calls);
    value("with the code", said);
    CODE(cuStreamAddCallback(stream, NULL, &seven, 0));
    CODE(cuStreamAddCallback(stream, told, &seven, 1));
    CODE(cuLaunchHostFunc(NULL, count, &seven));
    CODE(cuStreamSynchronize(NULL));
    value("in the default stream", calls);
}
