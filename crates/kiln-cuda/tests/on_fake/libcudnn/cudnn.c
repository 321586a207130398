/* A cuDNN for tests. It keeps the attributes of each descriptor, logs them when the descriptor is finished, proposes engines, and computes a forward convolution of
 * `float` in NCHW at once, in the host memory that the stand-in for libcuda gives out. Each function takes what the library's header declares.
 *
 *   FAKE_CUDNN_VERSION    91900      what the library says its version is
 *   FAKE_CUDNN_ATTRIBUTE  902        the attribute that is not accepted, with status 2000
 *   FAKE_CUDNN_EXECUTE    5001       what Execute answers
 *   FAKE_CUDNN_NO_PLAN    anything   no plan can be finished: status 3000
 *   FAKE_CUDA_LOG         path       a line for every call: process id, name, arguments in short
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENGINE = 2, CONFIG = 3, HEURISTICS = 4, PLAN = 5, FORWARD = 10, GRAPH = 15, PACK = 16, TENSOR = 17, MATMUL = 19 };
enum { HANDLE = 0, BOOLEAN = 2, INT64 = 3, FLOAT = 4, POINTER = 6, DESCRIPTOR = 15 };

struct attribute {
    int name, type;
    int64_t count;
    void *values;
    struct attribute *next;
};

struct descriptor {
    int kind, is_finished, engine;
    struct descriptor *graph;
    struct attribute *attributes;
};

/* Engines: number, notes (-1 ends them), workspace. The first four are proposed, the last is the fallback. */
static const struct { int number, notes[3]; int64_t workspace; } ENGINES[] = {
    {40, {4, -1}, 0}, {41, {0, -1}, 2000}, {42, {5, 6, -1}, 0}, {43, {-1}, 1 << 20}, {7, {-1}, 300},
};

static const char *last = "";

static void logged(const char *name, const char *format, ...) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    va_list arguments;
    fprintf(log, "%d %s ", (int)getpid(), name);
    va_start(arguments, format);
    vfprintf(log, format, arguments);
    va_end(arguments);
    fprintf(log, "\n");
    fclose(log);
}

static int failed(int status, const char *why) {
    last = why;
    return status;
}

static struct attribute *find(struct descriptor *d, int name) {
    for (struct attribute *a = d->attributes; a; a = a->next)
        if (a->name == name) return a;
    return NULL;
}

static int64_t *integers(struct descriptor *d, int name) { return find(d, name)->values; }
static struct descriptor *part(struct descriptor *d, int name) { return *(struct descriptor **)find(d, name)->values; }

size_t cudnnGetVersion(void) { return getenv("FAKE_CUDNN_VERSION") ? atoi(getenv("FAKE_CUDNN_VERSION")) : 91900; }
void cudnnGetLastErrorString(char *message, size_t room) { snprintf(message, room, "%s", last); }

const char *cudnnGetErrorString(int status) {
    return status == 2000 ? "CUDNN_STATUS_BAD_PARAM" : status == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OTHER";
}

int cudnnCreate(void **handle) {
    *handle = malloc(1);
    logged("cudnnCreate", "");
    return 0;
}

int cudnnDestroy(void *handle) {
    free(handle);
    logged("cudnnDestroy", "");
    return 0;
}

int cudnnSetStream(void *handle, void *stream) {
    logged("cudnnSetStream", "%d", stream != NULL);
    return 0;
}

int cudnnBackendCreateDescriptor(int kind, struct descriptor **made) {
    *made = calloc(1, sizeof **made);
    (*made)->kind = kind;
    logged("made", "%d", kind);
    return 0;
}

int cudnnBackendDestroyDescriptor(struct descriptor *d) {
    logged("destroyed", "%d", d->kind);
    free(d);
    return 0;
}

static size_t size_of(int type) {
    switch (type) {
    case BOOLEAN: return 1;
    case HANDLE: case INT64: case POINTER: case DESCRIPTOR: return 8;
    default: return 4;
    }
}

int cudnnBackendSetAttribute(struct descriptor *d, int name, int type, int64_t count, const void *values) {
    if (d->is_finished) return failed(2000, "the descriptor is finished");
    if (getenv("FAKE_CUDNN_ATTRIBUTE") && atoi(getenv("FAKE_CUDNN_ATTRIBUTE")) == name)
        return failed(2000, "this value is not accepted");
    struct attribute *a = calloc(1, sizeof *a), **end = &d->attributes;
    *a = (struct attribute){name, type, count, malloc(count * size_of(type)), NULL};
    memcpy(a->values, values, count * size_of(type));
    while (*end) end = &(*end)->next;
    *end = a;
    return 0;
}

static void describe(struct attribute *a, char *text, size_t room) {
    int used = snprintf(text, room, " %d:%d", a->name, a->type);
    for (int64_t at = 0; at < a->count; at++) {
        char *rest = text + used, *sign = at ? "," : "=";
        size_t left = room - used;
        switch (a->type) {
        case BOOLEAN: used += snprintf(rest, left, "%s%d", sign, ((char *)a->values)[at]); break;
        case INT64: used += snprintf(rest, left, "%s%lld", sign, (long long)((int64_t *)a->values)[at]); break;
        case FLOAT: used += snprintf(rest, left, "%s%g", sign, ((float *)a->values)[at]); break;
        case POINTER: used += snprintf(rest, left, "%s%p", sign, ((void **)a->values)[at]); break;
        case HANDLE: used += snprintf(rest, left, "%shandle", sign); break;
        case DESCRIPTOR: {
            struct descriptor *d = ((struct descriptor **)a->values)[at];
            used += snprintf(rest, left, "%s%d", sign, d->kind);
            if (d->kind == TENSOR) used += snprintf(text + used, room - used, "#%d", (int)*integers(d, 906));
            break;
        }
        default: used += snprintf(rest, left, "%s%d", sign, ((int *)a->values)[at]);
        }
    }
}

int cudnnBackendFinalize(struct descriptor *d) {
    char text[2000] = "";
    for (struct attribute *a = d->attributes; a; a = a->next)
        describe(a, text + strlen(text), sizeof text - strlen(text));
    logged("finalized", "%d%s", d->kind, text);
    if (d->kind == PLAN) {
        if (getenv("FAKE_CUDNN_NO_PLAN")) return failed(3000, "no kernel for this shape");
        d->engine = part(d, 401)->engine;
    }
    d->is_finished = 1;
    return 0;
}

int cudnnBackendGetAttribute(struct descriptor *d, int name, int type, int64_t wanted, int64_t *count, void *values) {
    switch (name) {
    case 202: {
        int is_fallback = *(int *)find(d, 200)->values == 2, first = is_fallback ? 4 : 0;
        int64_t found = is_fallback ? 1 : 4;
        *count = wanted == 0 ? found : wanted < found ? wanted : found;
        for (int64_t at = 0; at < wanted && at < found; at++) {
            struct descriptor *config = ((struct descriptor **)values)[at];
            config->engine = first + at, config->graph = part(d, 201), config->is_finished = 1;
        }
        return 0;
    }
    case 300: (*(struct descriptor **)values)->engine = d->engine, *count = 1; return 0;
    case 1301: *(int64_t *)values = ENGINES[d->engine].number, *count = 1; return 0;
    case 1303:
        for (*count = 0; ENGINES[d->engine].notes[*count] >= 0; ++*count)
            ((int *)values)[*count] = ENGINES[d->engine].notes[*count];
        return 0;
    case 402: *(int64_t *)values = ENGINES[d->engine].workspace, *count = 1; return 0;
    }
    return failed(2000, "there is no such attribute");
}

static void *address(struct descriptor *pack, struct descriptor *tensor) {
    struct attribute *ids = find(pack, 1000);
    for (int64_t at = 0; at < ids->count; at++)
        if (((int64_t *)ids->values)[at] == *integers(tensor, 906)) return ((void **)find(pack, 1001)->values)[at];
    return NULL;
}

/* One group, in the order of channels, rows, columns. */
static void convolve(struct descriptor *node, struct descriptor *pack) {
    struct descriptor *xd = part(node, 704), *wd = part(node, 703), *yd = part(node, 705), *c = part(node, 702);
    float *x = address(pack, xd), *w = address(pack, wd), *y = address(pack, yd);
    /* Multiples of 4 GiB stand for addresses in a capture that is never run. */
    if ((uintptr_t)x % (1ull << 32) == 0) return;
    int64_t *xs = integers(xd, 902), *ws = integers(wd, 902), *ys = integers(yd, 902);
    int64_t *pad = integers(c, 105), *step = integers(c, 103), *gap = integers(c, 102);
    for (int64_t n = 0; n < ys[0]; n++) for (int64_t k = 0; k < ys[1]; k++)
    for (int64_t p = 0; p < ys[2]; p++) for (int64_t q = 0; q < ys[3]; q++) {
        float sum = 0;
        for (int64_t i = 0; i < ws[1]; i++) for (int64_t r = 0; r < ws[2]; r++) for (int64_t s = 0; s < ws[3]; s++) {
            int64_t row = p * step[0] + r * gap[0] - pad[0], column = q * step[1] + s * gap[1] - pad[1];
            if (row < 0 || row >= xs[2] || column < 0 || column >= xs[3]) continue;
            sum += x[((n * xs[1] + i) * xs[2] + row) * xs[3] + column] * w[((k * ws[1] + i) * ws[2] + r) * ws[3] + s];
        }
        y[((n * ys[1] + k) * ys[2] + p) * ys[3] + q] = sum;
    }
}

int cudnnBackendExecute(void *handle, struct descriptor *plan, struct descriptor *pack) {
    logged("cudnnBackendExecute", "%d", ENGINES[plan->engine].number);
    if (getenv("FAKE_CUDNN_EXECUTE")) return failed(atoi(getenv("FAKE_CUDNN_EXECUTE")), "the launch failed");
    struct descriptor *node = part(part(plan, 401)->graph, 801);
    /* Behind the four tensors of attention come its scalars. */
    if (node->kind == MATMUL && find(pack, 1000)->count == 6) {
        float **values = (float **)find(pack, 1001)->values;
        logged("scalars", "%g %g", *values[4], *values[5]);
    }
    if (node->kind == FORWARD && *(int *)find(part(node, 704), 901)->values == 0) convolve(node, pack);
    return 0;
}
