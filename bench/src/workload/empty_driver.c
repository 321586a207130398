/* The calls of a launch without a driver behind them.
 *
 * They take the place of those of the library that the tests of kiln-cuda use, which answers everything else. A real driver runs through
 * more code and data than the first caches hold, so that the caller finds its own evicted from them. `empty_driver_drives_out` says how much these
 * calls run through: nothing, as much as the first caches hold, or as much as the second hold, too. They do nothing else. The time spent in
 * here is added up, to be taken off.
 */
#include <stddef.h>

#undef cuLaunchKernel
#undef cuEventRecord
#undef cuStreamWaitEvent
#undef cuGraphLaunch

#define FIRST_BYTES (48 * 1024)
#define SECOND_BYTES (4 * 1024 * 1024)
#define LINE 64

#if defined(__x86_64__)
#include <x86intrin.h>
#define JUMP "jmp 1f"
unsigned long long empty_driver_now(void) { unsigned core; return __rdtscp(&core); }
#else
#define JUMP "b 1f"
unsigned long long empty_driver_now(void) {
    unsigned long long now;
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(now));
    return now;
}
#endif

unsigned long long empty_driver_inside;
int empty_driver_drives_out;
static volatile char data[SECOND_BYTES];

static int call(void) {
    unsigned long long start = empty_driver_now();
    if (empty_driver_drives_out) {
        size_t bytes = empty_driver_drives_out > 1 ? SECOND_BYTES : FIRST_BYTES;
        for (size_t at = 0; at < bytes; at += LINE) data[at]++;
        /* A jump in each line of as many bytes of code. */
        __asm__ volatile(".p2align 6\n .rept 768\n " JUMP "\n .p2align 6\n 1:\n .endr\n");
    }
    empty_driver_inside += empty_driver_now() - start;
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)shared, (void)stream, (void)parameters, (void)extra;
    return call();
}

int cuEventRecord(void *event, void *stream) {
    (void)event, (void)stream;
    return call();
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return call();
}

int cuGraphLaunch(void *graph, void *stream) {
    (void)graph, (void)stream;
    return call();
}

/* cuBLASLt without a library behind it: it makes descriptors, proposes one algorithm with a workspace, and computes nothing. */

#define WORKSPACE_BYTES (4u << 20)

struct heuristic {
    unsigned long long algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

static int make(void **made) {
    static char object;
    *made = &object;
    return 0;
}

int cublasLtCreate(void **handle) { return make(handle); }
int cublasLtDestroy(void *handle) { return (void)handle, 0; }
int cublasLtMatmulDescCreate(void **made, int compute, int scale) { return (void)compute, (void)scale, make(made); }
int cublasLtMatmulDescDestroy(void *product) { return (void)product, 0; }
int cublasLtMatrixLayoutCreate(void **made, int type, unsigned long long rows, unsigned long long columns, long long leading) {
    return (void)type, (void)rows, (void)columns, (void)leading, make(made);
}
int cublasLtMatrixLayoutDestroy(void *layout) { return (void)layout, 0; }
int cublasLtMatmulPreferenceCreate(void **made) { return make(made); }
int cublasLtMatmulPreferenceDestroy(void *preference) { return (void)preference, 0; }

static int set(void *object, int attribute, const void *value, size_t bytes) {
    return (void)object, (void)attribute, (void)value, (void)bytes, 0;
}
int cublasLtMatmulDescSetAttribute(void *o, int a, const void *v, size_t b) { return set(o, a, v, b); }
int cublasLtMatrixLayoutSetAttribute(void *o, int a, const void *v, size_t b) { return set(o, a, v, b); }
int cublasLtMatmulPreferenceSetAttribute(void *o, int a, const void *v, size_t b) { return set(o, a, v, b); }

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int wanted,
                                   struct heuristic *found, int *count) {
    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *count = wanted < 1 ? wanted : 1;
    if (*count) found[0] = (struct heuristic){.workspace_bytes = WORKSPACE_BYTES};
    return 0;
}

int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, const void *beta,
                   const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace, size_t workspace_bytes,
                   void *stream) {
    (void)handle, (void)product, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout, (void)beta, (void)c, (void)c_layout;
    (void)d, (void)d_layout, (void)algorithm, (void)workspace, (void)workspace_bytes, (void)stream;
    return call();
}
