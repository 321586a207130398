/* A cuSOLVER for tests. It logs the arguments of each call and computes a Cholesky factor of `float` at once, in the host memory that the stand-in for
 * libcuda gives out. Each function takes what the library's header declares.
 *
 *   FAKE_CUSOLVER_HOST_BYTES  48     host workspace that is asked for
 *   FAKE_CUSOLVER_STATUS      7      what Xpotrf answers
 *   FAKE_CUDA_LOG             path   a line for every call: process id, name, arguments in short
 */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *handle_t;
typedef long long wide;

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

static int sizes(size_t *device, size_t *host) {
    const char *bytes = getenv("FAKE_CUSOLVER_HOST_BYTES");
    *device = 1000;
    *host = bytes ? (size_t)atoi(bytes) : 0;
    return 0;
}

static int made(const char *name, handle_t *handle) {
    *handle = malloc(1);
    return called(name, "");
}

static int freed(const char *name, handle_t handle) {
    free(handle);
    return called(name, "");
}

int cusolverDnCreate(handle_t *handle) { return made("cusolverDnCreate", handle); }
int cusolverDnDestroy(handle_t handle) { return freed("cusolverDnDestroy", handle); }
int cusolverDnCreateParams(handle_t *params) { return made("cusolverDnCreateParams", params); }
int cusolverDnDestroyParams(handle_t params) { return freed("cusolverDnDestroyParams", params); }
int cusolverDnCreateGesvdjInfo(handle_t *info) { return made("cusolverDnCreateGesvdjInfo", info); }
int cusolverDnDestroyGesvdjInfo(handle_t info) { return freed("cusolverDnDestroyGesvdjInfo", info); }
int cusolverDnSetStream(handle_t handle, void *stream) { return called("cusolverDnSetStream", "%d", stream != NULL); }

int cusolverDnXpotrf_bufferSize(
    handle_t handle, handle_t params, int fill, int64_t n, int type, const void *a, int64_t lda, int compute,
    size_t *device, size_t *host
) {
    called("Xpotrf_bufferSize", "%d %lld %d %lld %d", fill, (wide)n, type, (wide)lda, compute);
    return sizes(device, host);
}

int cusolverDnXpotrf(
    handle_t handle, handle_t params, int fill, int64_t n, int type, void *a, int64_t lda, int compute, void *work,
    size_t bytes, void *host, size_t host_bytes, int *info
) {
    const char *status = getenv("FAKE_CUSOLVER_STATUS");
    float *m = a;
    called("Xpotrf", "%d %lld %d %p %lld %d %p %zu %d %zu %p", fill, (wide)n, type, a, (wide)lda, compute, work, bytes,
           host != NULL, host_bytes, (void *)info);
    if (host) ((char *)host)[host_bytes - 1] = 1;
    if (status) return atoi(status);
    *info = 0;
    for (int64_t j = 0; j < n && type == 0 && fill == 0; j++) {
        float pivot = m[j * lda + j];
        for (int64_t k = 0; k < j; k++) pivot -= m[k * lda + j] * m[k * lda + j];
        if (!(pivot > 0)) { *info = (int)j + 1; break; }
        m[j * lda + j] = sqrtf(pivot);
        for (int64_t i = j + 1; i < n; i++) {
            float sum = m[j * lda + i];
            for (int64_t k = 0; k < j; k++) sum -= m[k * lda + i] * m[k * lda + j];
            m[j * lda + i] = sum / m[j * lda + j];
        }
    }
    return 0;
}

int cusolverDnXpotrs(
    handle_t handle, handle_t params, int fill, int64_t n, int64_t columns, int type, const void *a, int64_t lda,
    int b_type, void *b, int64_t ldb, int *info
) {
    return called("Xpotrs", "%d %lld %lld %d %p %lld %d %p %lld %p", fill, (wide)n, (wide)columns, type, a, (wide)lda,
                  b_type, b, (wide)ldb, (void *)info);
}

int cusolverDnXgetrf_bufferSize(
    handle_t handle, handle_t params, int64_t m, int64_t n, int type, const void *a, int64_t lda, int compute,
    size_t *device, size_t *host
) {
    called("Xgetrf_bufferSize", "%lld %lld %d %lld %d", (wide)m, (wide)n, type, (wide)lda, compute);
    return sizes(device, host);
}

int cusolverDnXgetrf(
    handle_t handle, handle_t params, int64_t m, int64_t n, int type, void *a, int64_t lda, int64_t *pivots, int compute,
    void *work, size_t bytes, void *host, size_t host_bytes, int *info
) {
    return called("Xgetrf", "%lld %lld %d %p %lld %p %d %p %zu %d %zu %p", (wide)m, (wide)n, type, a, (wide)lda,
                  (void *)pivots, compute, work, bytes, host != NULL, host_bytes, (void *)info);
}

int cusolverDnXgetrs(
    handle_t handle, handle_t params, int op, int64_t n, int64_t columns, int type, const void *a, int64_t lda,
    const int64_t *pivots, int b_type, void *b, int64_t ldb, int *info
) {
    return called("Xgetrs", "%d %lld %lld %d %p %lld %p %d %p %lld %p", op, (wide)n, (wide)columns, type, a, (wide)lda,
                  (void *)pivots, b_type, b, (wide)ldb, (void *)info);
}

int cusolverDnXgeqrf_bufferSize(
    handle_t handle, handle_t params, int64_t m, int64_t n, int type, const void *a, int64_t lda, int tau_type,
    const void *tau, int compute, size_t *device, size_t *host
) {
    called("Xgeqrf_bufferSize", "%lld %lld %d %lld %d %d", (wide)m, (wide)n, type, (wide)lda, tau_type, compute);
    return sizes(device, host);
}

int cusolverDnXgeqrf(
    handle_t handle, handle_t params, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type, void *tau,
    int compute, void *work, size_t bytes, void *host, size_t host_bytes, int *info
) {
    return called("Xgeqrf", "%lld %lld %d %p %lld %d %p %d %p %zu %d %zu %p", (wide)m, (wide)n, type, a, (wide)lda, tau_type,
                  tau, compute, work, bytes, host != NULL, host_bytes, (void *)info);
}

int cusolverDnXsyevd_bufferSize(
    handle_t handle, handle_t params, int job, int fill, int64_t n, int type, const void *a, int64_t lda, int w_type,
    const void *w, int compute, size_t *device, size_t *host
) {
    called("Xsyevd_bufferSize", "%d %d %lld %d %lld %d %d", job, fill, (wide)n, type, (wide)lda, w_type, compute);
    return sizes(device, host);
}

int cusolverDnXsyevd(
    handle_t handle, handle_t params, int job, int fill, int64_t n, int type, void *a, int64_t lda, int w_type, void *w,
    int compute, void *work, size_t bytes, void *host, size_t host_bytes, int *info
) {
    return called("Xsyevd", "%d %d %lld %d %p %lld %d %p %d %p %zu %d %zu %p", job, fill, (wide)n, type, a, (wide)lda, w_type,
                  w, compute, work, bytes, host != NULL, host_bytes, (void *)info);
}

#define ORMQR(letter, type)                                                                                              \
    int cusolverDn##letter##ormqr_bufferSize(                                                                            \
        handle_t handle, int side, int op, int m, int n, int k, const type *a, int lda, const type *tau, const type *c,  \
        int ldc, int *count                                                                                              \
    ) {                                                                                                                  \
        *count = 300;                                                                                                    \
        return called(#letter "ormqr_bufferSize", "%d %d %d %d %d %d %d", side, op, m, n, k, lda, ldc);                  \
    }                                                                                                                    \
    int cusolverDn##letter##ormqr(                                                                                       \
        handle_t handle, int side, int op, int m, int n, int k, const type *a, int lda, const type *tau, type *c,        \
        int ldc, type *work, int count, int *info                                                                        \
    ) {                                                                                                                  \
        return called(#letter "ormqr", "%d %d %d %d %d %p %d %p %p %d %p %d %p", side, op, m, n, k, (void *)a, lda,      \
                      (void *)tau, (void *)c, ldc, (void *)work, count, (void *)info);                                   \
    }

#define ORGQR(letter, type)                                                                                              \
    int cusolverDn##letter##orgqr_bufferSize(                                                                            \
        handle_t handle, int m, int n, int k, const type *a, int lda, const type *tau, int *count                        \
    ) {                                                                                                                  \
        *count = 200;                                                                                                    \
        return called(#letter "orgqr_bufferSize", "%d %d %d %d", m, n, k, lda);                                          \
    }                                                                                                                    \
    int cusolverDn##letter##orgqr(                                                                                       \
        handle_t handle, int m, int n, int k, type *a, int lda, const type *tau, type *work, int count, int *info        \
    ) {                                                                                                                  \
        return called(#letter "orgqr", "%d %d %d %p %d %p %p %d %p", m, n, k, (void *)a, lda, (void *)tau, (void *)work, \
                      count, (void *)info);                                                                              \
    }

#define GESVDJ(letter, type)                                                                                             \
    int cusolverDn##letter##gesvdj_bufferSize(                                                                           \
        handle_t handle, int job, int thin, int m, int n, const type *a, int lda, const type *s, const type *u, int ldu, \
        const type *v, int ldv, int *count, handle_t params                                                              \
    ) {                                                                                                                  \
        *count = 100;                                                                                                    \
        return called(#letter "gesvdj_bufferSize", "%d %d %d %d %d %d %d %d", job, thin, m, n, lda, ldu, ldv,            \
                      params != NULL);                                                                                   \
    }                                                                                                                    \
    int cusolverDn##letter##gesvdj(                                                                                      \
        handle_t handle, int job, int thin, int m, int n, type *a, int lda, type *s, type *u, int ldu, type *v, int ldv, \
        type *work, int count, int *info, handle_t params                                                                \
    ) {                                                                                                                  \
        return called(#letter "gesvdj", "%d %d %d %d %p %d %p %p %d %p %d %p %d %p %d", job, thin, m, n, (void *)a, lda, \
                      (void *)s, (void *)u, ldu, (void *)v, ldv, (void *)work, count, (void *)info, params != NULL);     \
    }

ORMQR(S, float)
ORMQR(D, double)
ORGQR(S, float)
ORGQR(D, double)
GESVDJ(S, float)
GESVDJ(D, double)
