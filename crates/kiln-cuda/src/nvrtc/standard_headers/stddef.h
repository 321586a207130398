// `size_t` and `ptrdiff_t` are built into NVRTC.
#pragma once
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) ((size_t)__INTADDR__(&(((type*)0)->member)))
#endif
typedef decltype(nullptr) nullptr_t;
typedef struct {
    long long integer __attribute__((aligned(8)));
    double floating __attribute__((aligned(16)));
} max_align_t;
