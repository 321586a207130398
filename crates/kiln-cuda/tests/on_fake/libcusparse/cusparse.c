/* A cuSPARSE for tests. It logs the arguments of each call, descriptors in full, and computes SpMV of `float` with 32-bit indices at once, in the host memory
 * that the stand-in for libcuda gives out. Each function takes what the library's header declares.
 *
 *   FAKE_CUSPARSE_STATUS  10     what SpMV answers
 *   FAKE_CUDA_LOG         path   a line for every call: process id, name, arguments in short
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *handle_t;
typedef long long wide;

struct descriptor {
    int64_t rows, columns, nonzeros;
    void *offsets, *indices, *values;
    char text[256];
};

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

int cusparseCreate(handle_t *handle) {
    *handle = malloc(1);
    return called("cusparseCreate", "");
}

int cusparseDestroy(handle_t handle) {
    free(handle);
    return called("cusparseDestroy", "");
}

int cusparseSetStream(handle_t handle, void *stream) { return called("cusparseSetStream", "%d", stream != NULL); }

int cusparseCreateCsr(
    struct descriptor **made, int64_t rows, int64_t columns, int64_t nonzeros, void *offsets, void *indices, void *values,
    int offset_type, int index_type, int base, int type
) {
    struct descriptor *d = *made = calloc(1, sizeof **made);
    d->rows = rows, d->columns = columns, d->nonzeros = nonzeros;
    d->offsets = offsets, d->indices = indices, d->values = values;
    snprintf(d->text, sizeof d->text, "csr(%lld %lld %lld %p %p %p %d %d %d %d)", (wide)rows, (wide)columns, (wide)nonzeros,
             offsets, indices, values, offset_type, index_type, base, type);
    return 0;
}

int cusparseCreateCoo(
    struct descriptor **made, int64_t rows, int64_t columns, int64_t nonzeros, void *row_indices, void *column_indices, void *values,
    int index_type, int base, int type
) {
    *made = calloc(1, sizeof **made);
    snprintf((*made)->text, sizeof (*made)->text, "coo(%lld %lld %lld %p %p %p %d %d %d)", (wide)rows, (wide)columns, (wide)nonzeros,
             row_indices, column_indices, values, index_type, base, type);
    return 0;
}

int cusparseCreateDnVec(struct descriptor **made, int64_t size, void *values, int type) {
    *made = calloc(1, sizeof **made);
    (*made)->values = values;
    snprintf((*made)->text, sizeof (*made)->text, "vec(%lld %p %d)", (wide)size, values, type);
    return 0;
}

int cusparseCreateDnMat(
    struct descriptor **made, int64_t rows, int64_t columns, int64_t leading, void *values, int type, int order
) {
    *made = calloc(1, sizeof **made);
    snprintf((*made)->text, sizeof (*made)->text, "mat(%lld %lld %lld %p %d %d)", (wide)rows, (wide)columns, (wide)leading,
             values, type, order);
    return 0;
}

static int destroyed(struct descriptor *descriptor) {
    free(descriptor);
    return called("destroyed", "");
}

int cusparseDestroySpMat(struct descriptor *descriptor) { return destroyed(descriptor); }
int cusparseDestroyDnVec(struct descriptor *descriptor) { return destroyed(descriptor); }
int cusparseDestroyDnMat(struct descriptor *descriptor) { return destroyed(descriptor); }

int cusparseSpMV_bufferSize(
    handle_t handle, int op, const void *alpha, struct descriptor *a, struct descriptor *x, const void *beta,
    struct descriptor *y, int compute, int algorithm, size_t *bytes
) {
    *bytes = 500;
    return called("SpMV_bufferSize", "%d %d %d", op, compute, algorithm);
}

int cusparseSpMV(
    handle_t handle, int op, const float *alpha, struct descriptor *a, struct descriptor *x, const float *beta,
    struct descriptor *y, int compute, int algorithm, void *work
) {
    const char *status = getenv("FAKE_CUSPARSE_STATUS");
    called("SpMV", "%d %g %s %s %g %s %d %d %p", op, *alpha, a->text, x->text, *beta, y->text, compute, algorithm, work);
    if (status) return atoi(status);
    int *offsets = a->offsets, *indices = a->indices;
    float *values = a->values, *from = x->values, *to = y->values;
    for (int64_t row = 0; row < a->rows && compute == 0 && op == 0; row++) {
        float sum = 0;
        for (int at = offsets[row]; at < offsets[row + 1]; at++) sum += values[at] * from[indices[at]];
        to[row] = *alpha * sum + (*beta == 0 ? 0 : *beta * to[row]);
    }
    return 0;
}

int cusparseSpMM_bufferSize(
    handle_t handle, int op, int op_b, const void *alpha, struct descriptor *a, struct descriptor *b, const void *beta,
    struct descriptor *c, int compute, int algorithm, size_t *bytes
) {
    *bytes = 0;
    return called("SpMM_bufferSize", "%d %d %d %d", op, op_b, compute, algorithm);
}

int cusparseSpMM(
    handle_t handle, int op, int op_b, const double *alpha, struct descriptor *a, struct descriptor *b, const double *beta,
    struct descriptor *c, int compute, int algorithm, void *work
) {
    return called("SpMM", "%d %d %g %s %s %g %s %d %d %d", op, op_b, *alpha, a->text, b->text, *beta, c->text, compute,
                  algorithm, work != NULL);
}

int cusparseSparseToDense_bufferSize(
    handle_t handle, struct descriptor *a, struct descriptor *b, int algorithm, size_t *bytes
) {
    *bytes = 700;
    return 0;
}

int cusparseSparseToDense(handle_t handle, struct descriptor *a, struct descriptor *b, int algorithm, void *work) {
    return called("SparseToDense", "%s %s %d %p", a->text, b->text, algorithm, work);
}
