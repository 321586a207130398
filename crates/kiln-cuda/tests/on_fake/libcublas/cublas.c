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
ENTRY(cublasDgeam_64) ENTRY(cublasDsymm_v2_64) ENTRY(cublasDtrmm_v2_64)

typedef long long number_t;

int cublasSgeam_64(
    void *handle, int op_a, int op_b, int64_t m, int64_t n, const float *alpha, const float *a, int64_t lda, const float *beta,
    const float *b, int64_t ldb, float *c, int64_t ldc
) {
    return called("cublasSgeam", "%d %d %lld %lld %g %p %lld %g %p %lld %p %lld", op_a, op_b, (number_t)m, (number_t)n, *alpha, (void *)a,
                  (number_t)lda, *beta, (void *)b, (number_t)ldb, (void *)c, (number_t)ldc);
}

int cublasSsymm_v2_64(
    void *handle, int side, int fill, int64_t m, int64_t n, const float *alpha, const float *a, int64_t lda, const float *b,
    int64_t ldb, const float *beta, float *c, int64_t ldc
) {
    return called("cublasSsymm", "%d %d %lld %lld %g %p %lld %p %lld %g %p %lld", side, fill, (number_t)m, (number_t)n, *alpha, (void *)a,
                  (number_t)lda, (void *)b, (number_t)ldb, *beta, (void *)c, (number_t)ldc);
}

int cublasStrmm_v2_64(
    void *handle, int side, int fill, int op, int unit, int64_t m, int64_t n, const float *alpha, const float *a, int64_t lda,
    const float *b, int64_t ldb, float *c, int64_t ldc
) {
    return called("cublasStrmm", "%d %d %d %d %lld %lld %g %p %lld %p %lld %p %lld", side, fill, op, unit, (number_t)m, (number_t)n, *alpha,
                  (void *)a, (number_t)lda, (void *)b, (number_t)ldb, (void *)c, (number_t)ldc);
}
