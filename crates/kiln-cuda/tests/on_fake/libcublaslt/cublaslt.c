/* A cuBLASLt for tests. It logs the arguments of searches and products, enumerators under the names that the library's header gives them, and computes nothing.
 * It proposes three algorithms: the first needs 4 MiB of workspace and is left out where the limit is below that; the others need none.
 *
 *   FAKE_CUBLASLT_STATUS  15     what cublasLtMatmul answers
 *   FAKE_CUDA_LOG         path   a line for every call: process id, name, arguments in short
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INVALID_VALUE 7
#define PROPOSED 3
#define LARGE_WORKSPACE (4 << 20)

struct object {
    int scale_type;
    uint64_t workspace;
    uint64_t pointers[3];
    char text[512];
};

struct algorithm {
    uint64_t data[8];
};

struct heuristic {
    struct algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
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

static void add(struct object *object, const char *format, ...) {
    size_t length = strlen(object->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(object->text + length, sizeof object->text - length, format, arguments);
    va_end(arguments);
}

struct named {
    int number;
    const char *name;
};

static const char *name_of(const struct named *names, int number) {
    for (; names->name; names++)
        if (names->number == number) return names->name;
    return "?";
}

/* cudaDataType */
static const char *data_type(int number) {
    static const struct named names[] = {
        {0, "32F"}, {1, "64F"}, {2, "16F"}, {3, "8I"}, {10, "32I"}, {14, "16BF"}, {28, "8F_E4M3"}, {29, "8F_E5M2"}, {0, NULL},
    };
    return name_of(names, number);
}

/* cublasComputeType_t */
static const char *compute_type(int number) {
    static const struct named names[] = {
        {64, "16F"}, {68, "32F"}, {70, "64F"}, {72, "32I"}, {77, "32F_FAST_TF32"}, {78, "32F_EMULATED_16BFX9"}, {0, NULL},
    };
    return name_of(names, number);
}

/* cublasLtEpilogue_t */
static const char *epilogue(int number) {
    static const struct named names[] = {
        {1, "DEFAULT"}, {2, "RELU"}, {4, "BIAS"}, {6, "RELU_BIAS"}, {32, "GELU"}, {36, "GELU_BIAS"}, {0, NULL},
    };
    return name_of(names, number);
}

static int made(struct object **object) { return (*object = calloc(1, sizeof **object)) ? 0 : 3; }

int cublasLtCreate(struct object **handle) { return made(handle) + called("cublasLtCreate", ""); }
int cublasLtDestroy(struct object *handle) { return free(handle), 0; }
int cublasLtMatmulDescDestroy(struct object *object) { return free(object), called("destroyed", ""); }
int cublasLtMatrixLayoutDestroy(struct object *object) { return free(object), called("destroyed", ""); }
int cublasLtMatmulPreferenceDestroy(struct object *object) { return free(object), called("destroyed", ""); }
int cublasLtMatmulPreferenceCreate(struct object **object) { return made(object); }

int cublasLtMatmulDescCreate(struct object **object, int compute, int scale) {
    made(object);
    (*object)->scale_type = scale;
    add(*object, "%s %s", compute_type(compute), data_type(scale));
    return 0;
}

int cublasLtMatmulDescSetAttribute(struct object *object, int attribute, const void *value, size_t bytes) {
    int number = bytes == 4 ? *(const int32_t *)value : 0;
    uint64_t wide = bytes == 8 ? *(const uint64_t *)value : 0;
    int is_wide = attribute == 8 || attribute == 17 || attribute == 18;
    if (bytes != (is_wide ? 8 : 4)) return INVALID_VALUE;
    switch (attribute) {
    case 3: return add(object, " TRANSA=%c", "NTC"[number]), 0;
    case 4: return add(object, " TRANSB=%c", "NTC"[number]), 0;
    case 7: return add(object, " EPILOGUE=%s", epilogue(number)), 0;
    case 26: return add(object, " BIAS_DATA_TYPE=%s", data_type(number)), 0;
    case 8: return object->pointers[0] = wide, 0;
    case 17: return object->pointers[1] = wide, 0;
    case 18: return object->pointers[2] = wide, 0;
    default: return INVALID_VALUE;
    }
}

int cublasLtMatrixLayoutCreate(struct object **object, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    made(object);
    add(*object, "%s:%llux%llu:%lld", data_type(type), (unsigned long long)rows, (unsigned long long)columns, (long long)leading);
    return 0;
}

int cublasLtMatrixLayoutSetAttribute(struct object *object, int attribute, const void *value, size_t bytes) {
    if (attribute == 5 && bytes == 4) return add(object, ":BATCH_COUNT=%d", *(const int32_t *)value), 0;
    if (attribute == 6 && bytes == 8) return add(object, ":STRIDE=%lld", (long long)*(const int64_t *)value), 0;
    return INVALID_VALUE;
}

int cublasLtMatmulPreferenceSetAttribute(struct object *object, int attribute, const void *value, size_t bytes) {
    if (attribute == 1 && bytes == 8) {
        object->workspace = *(const uint64_t *)value;
        return add(object, "MAX_WORKSPACE_BYTES=%llu", (unsigned long long)object->workspace), 0;
    }
    if (attribute == 3 && bytes == 4) return add(object, " REDUCTION_SCHEME_MASK=%u", *(const uint32_t *)value), 0;
    if (attribute >= 5 && attribute <= 8 && bytes == 4)
        return add(object, " MIN_ALIGNMENT_%c=%u", "ABCD"[attribute - 5], *(const uint32_t *)value), 0;
    return INVALID_VALUE;
}

int cublasLtMatmulAlgoGetHeuristic(
    struct object *handle, struct object *product, struct object *a, struct object *b, struct object *c, struct object *d,
    struct object *preference, int wanted, struct heuristic *found, int *count
) {
    called("product", "%s", product->text);
    called("layouts", "%s %s %s %s", a->text, b->text, c->text, d->text);
    called("pointers", "%llu %llu %llu", (unsigned long long)product->pointers[0], (unsigned long long)product->pointers[1],
           (unsigned long long)product->pointers[2]);
    called("preference", "%s", preference->text);
    *count = 0;
    for (int at = 0; at < PROPOSED && *count < wanted; at++) {
        size_t needs = at == 0 ? LARGE_WORKSPACE : 0;
        if (needs > preference->workspace) continue;
        struct heuristic *result = &found[(*count)++];
        memset(result, 0, sizeof *result);
        result->algorithm.data[0] = 100 + at;
        result->workspace = needs;
    }
    return *count > 0 ? 0 : 15;
}

static double scalar(int type, const void *value) {
    switch (type) {
    case 0: return *(const float *)value;
    case 1: return *(const double *)value;
    case 10: return *(const int32_t *)value;
    case 2: return *(const uint16_t *)value == 0x3c00 ? 1 : *(const uint16_t *)value == 0 ? 0 : -99;
    default: return -99;
    }
}

int cublasLtMatmul(
    struct object *handle, struct object *product, const void *alpha, const void *a, struct object *a_layout, const void *b,
    struct object *b_layout, const void *beta, const void *c, struct object *c_layout, void *d, struct object *d_layout,
    const struct algorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream
) {
    const char *status = getenv("FAKE_CUBLASLT_STATUS");
    called("cublasLtMatmul", "%g %p %p %g %p %p algorithm=%llu workspace=%p:%zu stream=%d", scalar(product->scale_type, alpha), a, b,
           scalar(product->scale_type, beta), c, d, (unsigned long long)algorithm->data[0], workspace, workspace_bytes,
           stream != NULL);
    called("given", "%#llx %#llx %#llx", (unsigned long long)product->pointers[0], (unsigned long long)product->pointers[1],
           (unsigned long long)product->pointers[2]);
    return status ? atoi(status) : 0;
}
