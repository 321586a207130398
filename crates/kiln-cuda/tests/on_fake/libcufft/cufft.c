/* A cuFFT for tests. It logs the arguments of each call, types under the names that the library's header gives them, and computes nothing.
 *
 *   FAKE_CUFFT_STATUS  5      what transforms answer
 *   FAKE_CUDA_LOG      path   a line for every call: process id, name, arguments in short
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* cufftType */
static const char *type_name(int type) {
    switch (type) {
    case 0x29: return "C2C";
    case 0x2a: return "R2C";
    case 0x2c: return "C2R";
    case 0x69: return "Z2Z";
    case 0x6a: return "D2Z";
    case 0x6c: return "Z2D";
    default: return "?";
    }
}

int cufftCreate(int *plan) {
    static int last = 40;
    *plan = ++last;
    return called("cufftCreate", "%d", *plan);
}

int cufftDestroy(int plan) { return called("cufftDestroy", "%d", plan); }
int cufftSetAutoAllocation(int plan, int is_on) { return called("cufftSetAutoAllocation", "%d", is_on); }
int cufftSetStream(int plan, void *stream) { return called("cufftSetStream", "%d", stream != NULL); }
int cufftSetWorkArea(int plan, void *area) { return called("cufftSetWorkArea", "%p", area); }

static const char *sizes(char *text, const wide *list, int rank) {
    int length = 0;
    for (int at = 0; at < rank; at++) length += sprintf(text + length, "%s%lld", at ? "x" : "", list[at]);
    return text;
}

int cufftMakePlanMany64(
    int plan, int rank, wide *n, wide *input, wide input_stride, wide input_distance, wide *output, wide output_stride,
    wide output_distance, int type, wide batch, size_t *work
) {
    char texts[3][128];
    *work = rank > 1 ? 640 : 0;
    return called("cufftMakePlanMany64", "%s input=%s:%lld:%lld output=%s:%lld:%lld %s batch=%lld", sizes(texts[0], n, rank),
                  sizes(texts[1], input, rank), input_stride, input_distance, sizes(texts[2], output, rank), output_stride,
                  output_distance, type_name(type), batch);
}

static int transformed(const char *name, void *input, void *output, const char *direction) {
    const char *status = getenv("FAKE_CUFFT_STATUS");
    called("transform", "%s %p %p%s", name, input, output, direction);
    return status ? atoi(status) : 0;
}

/* CUFFT_FORWARD is -1, CUFFT_INVERSE is 1. */
static const char *direction_name(int direction) { return direction == -1 ? " FORWARD" : direction == 1 ? " INVERSE" : " ?"; }

int cufftExecC2C(int plan, void *input, void *output, int direction) {
    return transformed("C2C", input, output, direction_name(direction));
}
int cufftExecZ2Z(int plan, void *input, void *output, int direction) {
    return transformed("Z2Z", input, output, direction_name(direction));
}
int cufftExecR2C(int plan, void *input, void *output) { return transformed("R2C", input, output, ""); }
int cufftExecD2Z(int plan, void *input, void *output) { return transformed("D2Z", input, output, ""); }
int cufftExecC2R(int plan, void *input, void *output) { return transformed("C2R", input, output, ""); }
int cufftExecZ2D(int plan, void *input, void *output) { return transformed("Z2D", input, output, ""); }
