/* A cuBLAS for tests. It logs each call and does the work of `saxpy` at once, in the host memory that the stand-in for libcuda gives out.
 *
 *   FAKE_CUBLAS_STATUS  13     what saxpy answers
 *   FAKE_CUDA_LOG       path   a line for every call: process id, name, arguments in short
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int called(const char *name, const char *format, ...) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        va_list arguments;
        fprintf(log, "%d %s ", (int)getpid(), name);
        va_start(arguments, format);
        vfprintf(log, format, arguments);
        va_end(arguments);
        fprintf(log, "\n");
        fclose(log);
    }
    return 0;
}

int cublasCreate_v2(void **handle) {
    *handle = malloc(1);
    return called("cublasCreate", "");
}

int cublasDestroy_v2(void *handle) {
    free(handle);
    return called("cublasDestroy", "");
}

int cublasSetStream_v2(void *handle, void *stream) { return called("cublasSetStream", "%d", stream != NULL); }

int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes) {
    return called("cublasSetWorkspace", "%d %zu", workspace != NULL, bytes);
}

int cublasSetPointerMode_v2(void *handle, int mode) { return called("cublasSetPointerMode", "%d", mode); }

int cublasSaxpy_v2_64(
    void *handle, int64_t n, const float *alpha, const float *x, int64_t x_step, float *y, int64_t y_step
) {
    const char *status = getenv("FAKE_CUBLAS_STATUS");
    called("cublasSaxpy", "%lld %g %lld %lld", (long long)n, *alpha, (long long)x_step, (long long)y_step);
    if (status) return atoi(status);
    for (int64_t at = 0; at < n; at++) y[at * y_step] += *alpha * x[at * x_step];
    return 0;
}

#define ENTRY(name) int name(void) { return called(#name, ""); }
ENTRY(cublasDaxpy_v2_64)
ENTRY(cublasSgemv_v2_64) ENTRY(cublasDgemv_v2_64) ENTRY(cublasSger_v2_64) ENTRY(cublasDger_v2_64)
ENTRY(cublasSdot_v2_64) ENTRY(cublasDdot_v2_64) ENTRY(cublasSnrm2_v2_64) ENTRY(cublasDnrm2_v2_64)
ENTRY(cublasSscal_v2_64) ENTRY(cublasDscal_v2_64) ENTRY(cublasSsyrk_v2_64) ENTRY(cublasDsyrk_v2_64)
ENTRY(cublasStrsm_v2_64) ENTRY(cublasDtrsm_v2_64)
ENTRY(cublasScopy_v2_64) ENTRY(cublasDcopy_v2_64) ENTRY(cublasSswap_v2_64) ENTRY(cublasDswap_v2_64)
ENTRY(cublasSasum_v2_64) ENTRY(cublasDasum_v2_64) ENTRY(cublasIsamax_v2_64) ENTRY(cublasIdamax_v2_64)
