/* Copies and fills, with what they leave in memory. */
#include "answers.h"

enum { BYTES = 4096 };

static unsigned char from[BYTES], back[BYTES];

static long long sum(const unsigned char *bytes, size_t count) {
    unsigned long long hash = 14695981039346656037ull;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 1099511628211ull;
    return (long long)(hash >> 16);
}

/* The bytes of device memory as one number. */
static void content(const char *name, address p) {
    NEED(cuMemcpyDtoH_v2(back, p, BYTES));
    value(name, sum(back, BYTES));
}

void copies(void) {
    address p = 0, q = 0;
    void *host = NULL;
    handle stream = NULL;
    begin();
    for (unsigned i = 0; i < BYTES; i++) from[i] = (unsigned char)(i * 7 + i / 256);
    NEED(cuMemAlloc_v2(&p, BYTES));
    NEED(cuMemAlloc_v2(&q, BYTES));
    NEED(cuMemAllocHost_v2(&host, BYTES));
    NEED(cuStreamCreate(&stream, 1));
    NEED(cuMemsetD8_v2(q, 0, BYTES));
    CODE(cuMemcpyHtoD_v2(p, from, BYTES));
    content("after a copy to the device", p);
    CODE(cuMemcpyHtoD_v2(p, from, 0));
    CODE(cuMemcpyHtoD_v2(p, NULL, 4));
    CODE(cuMemcpyHtoD_v2(0, from, 4));
    CODE(cuMemcpyHtoD_v2(0, from, 0));
    CODE(cuMemcpyHtoD_v2(p + BYTES - 2, from, 4));
    CODE(cuMemcpyHtoD_v2(0x1234, from, 4));
    CODE(cuMemcpyDtoH_v2(NULL, p, 4));
    CODE(cuMemcpyDtoH_v2(back, 0, 4));
    CODE(cuMemcpyDtoH_v2(back, p, 0));
    CODE(cuMemcpyDtoH_v2(back, p + BYTES - 2, 4));
    CODE(cuMemcpyDtoD_v2(q, p, BYTES));
    content("after a copy on the device", q);
    CODE(cuMemcpyDtoD_v2(q + 1, p + 3, 101));
    content("after a copy of odd bytes", q);
    CODE(cuMemcpyDtoD_v2(q, p, 0));
    CODE(cuMemcpyDtoD_v2(q, 0, 4));
    CODE(cuMemcpyDtoD_v2(q + BYTES - 2, p, 4));
    CODE(cuMemcpyDtoD_v2(q, p + BYTES - 2, 4));
    CODE(cuMemcpy(q, p, 64));
    CODE(cuMemcpy(q, (address)(size_t)host, 0));
    memcpy(host, from, BYTES);
    CODE(cuMemcpy(q, (address)(size_t)host, 64));
    CODE(cuMemcpy(q, (address)(size_t)from, 64));
    content("after copies of either kind", q);
    CODE(cuMemcpy(0, p, 4));
    CODE(cuMemcpyHtoDAsync_v2(q, host, BYTES, stream));
    CODE(cuMemcpyDtoDAsync_v2(p, q, BYTES, stream));
    CODE(cuMemcpyDtoHAsync_v2(host, p, BYTES, stream));
    CODE(cuStreamSynchronize(stream));
    value("in pinned memory", sum(host, BYTES));
    CODE(cuMemcpyHtoDAsync_v2(q, NULL, 4, stream));
    CODE(cuMemcpyHtoDAsync_v2(0, host, 4, stream));
    CODE(cuMemcpyDtoHAsync_v2(NULL, q, 4, stream));
    CODE(cuMemcpyDtoDAsync_v2(q, 0, 4, stream));
    CODE(cuMemcpyAsync(q, p, 64, stream));
    CODE(cuMemcpyAsync(q, 0, 64, stream));
    CODE(cuMemcpyHtoDAsync_v2(q, from, 128, stream));
    CODE(cuStreamSynchronize(stream));
    CODE(cuMemFree_v2(p));
    NAMED("from freed memory", cuMemcpyDtoH_v2(back, p, 4));
    NAMED("to freed memory", cuMemcpyHtoD_v2(p, from, 4));
}

static struct copy2d rows(address to, const void *host, size_t width, size_t height) {
    struct copy2d copy;
    memset(&copy, 0, sizeof copy);
    copy.from_kind = 1;
    copy.from_host = host;
    copy.from_pitch = 64;
    copy.to_kind = 2;
    copy.to_device = to;
    copy.to_pitch = 128;
    copy.width = width;
    copy.height = height;
    return copy;
}

void copies_of_rows(void) {
    address p = 0;
    struct copy2d copy;
    begin();
    for (unsigned i = 0; i < BYTES; i++) from[i] = (unsigned char)(i * 5 + i / 64);
    NEED(cuMemAlloc_v2(&p, BYTES));
    NEED(cuMemsetD8_v2(p, 0, BYTES));
    copy = rows(p, from, 48, 8);
    CODE(cuMemcpy2D_v2(&copy));
    content("eight rows", p);
    copy.from_x = 5;
    copy.from_y = 2;
    copy.to_x = 9;
    copy.to_y = 3;
    copy.width = 31;
    NAMED("inside of both", cuMemcpy2D_v2(&copy));
    content("rows inside of both", p);
    copy = rows(p, from, 100, 8);
    NAMED("wider than the pitch of the host", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 48, 8);
    copy.to_pitch = 40;
    NAMED("wider than the pitch of the device", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 0, 8);
    NAMED("no width", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 48, 0);
    NAMED("no height", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 48, 8);
    copy.from_pitch = 0;
    NAMED("no pitch of the host", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 48, 1);
    copy.from_pitch = copy.to_pitch = 0;
    NAMED("one row without pitches", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 48, 100);
    NAMED("beyond the memory", cuMemcpy2D_v2(&copy));
    copy = rows(0, from, 48, 8);
    NAMED("to nothing", cuMemcpy2D_v2(&copy));
    copy = rows(p, NULL, 48, 8);
    NAMED("from nothing", cuMemcpy2D_v2(&copy));
    copy = rows(p, from, 48, 8);
    copy.to_kind = 77;
    NAMED("to a kind that there is not", cuMemcpy2D_v2(&copy));
    NAMED("no description", cuMemcpy2D_v2(NULL));
    copy = rows(p, from, 33, 5);
    NAMED("without alignment", cuMemcpy2DUnaligned_v2(&copy));
    NAMED("in a stream", cuMemcpy2DAsync_v2(&copy, NULL));
    copy.from_kind = 2;
    copy.from_device = p;
    copy.from_pitch = 128;
    copy.to_device = p + 2048;
    NAMED("on the device", cuMemcpy2D_v2(&copy));
    content("at the end", p);
}

void fills(void) {
    address p = 0;
    handle stream = NULL;
    begin();
    NEED(cuMemAlloc_v2(&p, BYTES));
    NEED(cuStreamCreate(&stream, 1));
    CODE(cuMemsetD8_v2(p, 0xab, BYTES));
    content("bytes", p);
    CODE(cuMemsetD16_v2(p + 2, 0x1234, 100));
    content("half words", p);
    CODE(cuMemsetD32_v2(p + 4, 0xdeadbeef, 100));
    content("words", p);
    CODE(cuMemsetD8_v2(p, 0, 0));
    CODE(cuMemsetD8_v2(0, 0, 4));
    CODE(cuMemsetD8_v2(0, 0, 0));
    CODE(cuMemsetD8_v2(p + BYTES - 2, 0, 4));
    CODE(cuMemsetD8_v2(0x1234, 0, 4));
    CODE(cuMemsetD16_v2(p + 1, 0, 4));
    CODE(cuMemsetD32_v2(p + 2, 0, 4));
    CODE(cuMemsetD32_v2(p + BYTES - 4, 0, 2));
    CODE(cuMemsetD8Async(p, 1, 64, stream));
    CODE(cuMemsetD16Async(p + 64, 2, 64, stream));
    CODE(cuMemsetD32Async(p + 256, 3, 64, stream));
    CODE(cuMemsetD32Async(p + 2, 3, 64, stream));
    CODE(cuStreamSynchronize(stream));
    content("in a stream", p);
    CODE(cuMemsetD2D8_v2(p, 64, 9, 13, 5));
    CODE(cuMemsetD2D16_v2(p + 512, 64, 0x4321, 13, 5));
    CODE(cuMemsetD2D32_v2(p + 1024, 64, 0xfeedface, 13, 5));
    content("rows", p);
    CODE(cuMemsetD2D32_v2(p, 62, 0, 13, 5));
    CODE(cuMemsetD2D32_v2(p, 64, 0, 17, 5));
    CODE(cuMemsetD2D32_v2(p, 64, 0, 0, 5));
    CODE(cuMemsetD2D32_v2(p, 64, 0, 13, 0));
    CODE(cuMemsetD2D32_v2(p, 64, 0, 13, 500));
    NEED(cuCtxSynchronize());
    CODE(cuMemsetD2D8Async(p, 64, 9, 13, 5, stream));
    CODE(cuStreamSynchronize(stream));
    content("at the end", p);
}
