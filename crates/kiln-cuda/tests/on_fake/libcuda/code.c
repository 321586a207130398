/* Modules and kernels. An image is text, or machine code that the linker made of such text; each `.entry name(.param .u64 a, .param .u32 b)` in it is a kernel, each
 * `.global .u32 name` a variable. What a kernel does its name says:
 *
 *   set(to, value, count)  writes a 32-bit value again and again
 *   first_of(to, map)      writes the first 32 bits of a parameter of 128 bytes that is aligned to 64
 *   crash                  loses the device, which shows at the next look
 *   stall, resume          make the stream say that it is not done, and that it is
 *   the kernels of the laws of the driver interface do what kiln-conform says of them
 *   anything else          nothing
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "fake.h"

#define FUNCTIONS 16

struct Module {
    struct Function functions[FUNCTIONS];
    unsigned count;
    char variable[64];
    unsigned value;
};

static void read_word(char *into, size_t room, const char *from) {
    size_t length = strspn(from, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    snprintf(into, room, "%.*s", (int)length, from);
}

/* Where parameters begin in the constant memory of an H200: an alignment counts from there. */
#define PARAMETER_BASE 0x210

static void read_parameters(struct Function *function, const char *text) {
    const char *end = strchr(text, ')');
    size_t offset = 0;
    while (end && function->parameters < PARAMETERS && (text = strstr(text, ".param .")) && text < end) {
        text += strlen(".param .") + 1;
        size_t size = (size_t)atoi(text) / 8, alignment = size;
        if (!strncmp(text, "lign ", 5)) {
            const char *array = strchr(text, '[');
            alignment = (size_t)atoi(text + 5);
            size = array ? (size_t)atoi(array + 1) : alignment;
        }
        offset = (PARAMETER_BASE + offset + alignment - 1) / alignment * alignment - PARAMETER_BASE;
        function->offsets[function->parameters] = offset;
        function->sizes[function->parameters++] = size;
        offset += size;
    }
}

/* The first word behind `.global` that is no directive and no number. */
static void read_variable(struct Module *module, const char *image) {
    const char *text = strstr(image, ".global ");
    if (!text) return;
    for (text += strlen(".global "); *text == '.' || *text == ' ' || (*text >= '0' && *text <= '9'); )
        text += *text == ' ' ? 1 : strcspn(text, " ");
    read_word(module->variable, sizeof module->variable, text);
    const char *value = strchr(text, '=');
    if (value && value < strchr(text, ';')) module->value = (unsigned)atoi(value + 1);
}

static void write_log(unsigned count, unsigned *options, void **values, unsigned which, const char *text) {
    for (unsigned at = 0; at + 1 < count; at++)
        if (options[at] == which) snprintf(values[at], (size_t)(uintptr_t)values[at + 1], "%s", text);
}

/* What the linker makes of PTX: a header of machine code without sections, and the text behind it. */
#define HEADER_BYTES 64
#define MACHINE_AT 0x12
#define MACHINE_CUDA 190

struct Link { char *code; size_t bytes; };

Status cuLinkCreate_v2(unsigned count, unsigned *options, void **values, struct Link **link) {
    (void)options, (void)values;
    ENTER_CONTEXT("%u", count);
    *link = calloc(1, sizeof **link);
    return SUCCESS;
}

Status cuLinkAddData_v2(struct Link *link, unsigned kind, const char *text, size_t bytes, const char *name, unsigned count,
                        unsigned *options, void **values) {
    (void)count, (void)options, (void)values;
    ENTER_CONTEXT("%u %zu %s", kind, bytes, name);
    if (kind != 1 || text[bytes - 1]) return INVALID_VALUE;
    if (strstr(text, "syntax error") || strstr(text, "nonsense")) return INVALID_PTX;
    link->bytes = HEADER_BYTES + bytes;
    link->code = calloc(1, link->bytes);
    memcpy(link->code, "\x7f" "ELF", 4);
    link->code[MACHINE_AT] = (char)MACHINE_CUDA;
    memcpy(link->code + HEADER_BYTES, text, bytes);
    return SUCCESS;
}

Status cuLinkComplete(struct Link *link, void **code, size_t *bytes) {
    ENTER_CONTEXT("");
    *code = link->code;
    *bytes = link->bytes;
    return SUCCESS;
}

Status cuLinkDestroy(struct Link *link) {
    ENTER_CONTEXT("");
    free(link->code);
    free(link);
    return SUCCESS;
}

Status cuModuleLoadDataEx(struct Module **module, const char *image, unsigned count, unsigned *options, void **values) {
    int is_code = !memcmp(image, "\x7f" "ELF", 4);
    ENTER_CONTEXT("%u%s", count, is_code ? " cubin" : "");
    if (is_code) image += HEADER_BYTES;
    if (strstr(image, "syntax error") || strstr(image, "nonsense")) {
        write_log(count, options, values, 5, "ptxas line 3; fatal : Parsing error");
        write_log(count, options, values, 3, "compiling for sm_90");
        return INVALID_PTX;
    }
    *module = calloc(1, sizeof **module);
    for (const char *at = image; (at = strstr(at, ".entry ")) && (*module)->count < FUNCTIONS; ) {
        struct Function *function = &(*module)->functions[(*module)->count++];
        at += strlen(".entry ");
        read_word(function->name, sizeof function->name, at);
        function->module = *module;
        function->dynamic_shared_bytes = STATIC_LIMIT_BYTES;
        read_parameters(function, at);
    }
    read_variable(*module, image);
    return SUCCESS;
}

Status cuModuleUnload(struct Module *module) {
    ENTER_CONTEXT("");
    free(module);
    return SUCCESS;
}

Status cuModuleGetFunction(struct Function **function, struct Module *module, const char *name) {
    ENTER_CONTEXT("%s", name);
    for (unsigned at = 0; at < module->count; at++) {
        *function = &module->functions[at];
        if (!strcmp((*function)->name, name)) return SUCCESS;
    }
    return NOT_FOUND;
}

Status cuModuleGetGlobal_v2(Address *address, size_t *bytes, struct Module *module, const char *name) {
    ENTER_CONTEXT("%s", name);
    if (!module->variable[0] || strcmp(module->variable, name)) return NOT_FOUND;
    *address = (Address)(uintptr_t)&module->value;
    *bytes = sizeof module->value;
    return SUCCESS;
}

Status cuModuleGetFunctionCount(unsigned *count, struct Module *module) {
    ENTER_CONTEXT("");
    *count = module->count;
    return SUCCESS;
}

Status cuModuleEnumerateFunctions(struct Function **functions, unsigned count, struct Module *module) {
    ENTER_CONTEXT("%u", count);
    for (unsigned at = 0; at < count; at++) functions[at] = &module->functions[at];
    return SUCCESS;
}

Status cuFuncLoad(struct Function *function) {
    ENTER_CONTEXT("%s", function->name);
    return SUCCESS;
}

Status cuFuncGetName(const char **name, struct Function *function) {
    ENTER_CONTEXT("");
    *name = function->name;
    return SUCCESS;
}

Status cuFuncGetAttribute(int *value, int attribute, struct Function *function) {
    ENTER_CONTEXT("%d", attribute);
    switch (attribute) {
        case 0: *value = 512; break;                             /* threads */
        case 4: *value = 24; break;                              /* registers */
        case 8: *value = function->dynamic_shared_bytes; break;
        default: *value = 0;
    }
    return SUCCESS;
}

Status cuFuncSetAttribute(struct Function *function, int attribute, int value) {
    ENTER_CONTEXT("%d %d", attribute, value);
    if (attribute != 8 || value > OPTIN_SHARED_BYTES) return INVALID_VALUE;
    function->dynamic_shared_bytes = value;
    return SUCCESS;
}

Status cuFuncGetParamInfo(struct Function *function, size_t index, size_t *offset, size_t *bytes) {
    ENTER_CONTEXT("%zu", index);
    if (index >= function->parameters) return INVALID_VALUE;
    *offset = function->offsets[index];
    *bytes = function->sizes[index];
    return SUCCESS;
}

Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct Function *function, int threads, size_t shared) {
    ENTER_CONTEXT("%d %zu", threads, shared);
    *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
    if (shared && (size_t)*blocks > 102400 / shared) *blocks = (int)(102400 / shared);
    if (shared > (size_t)function->dynamic_shared_bytes) *blocks = 0;
    return SUCCESS;
}

Status cuOccupancyMaxPotentialBlockSize(int *grid, int *threads, struct Function *function, const void *callback,
                                        size_t shared, int limit) {
    (void)function, (void)callback;
    ENTER_CONTEXT("%zu %d", shared, limit);
    *grid = MULTIPROCESSORS * 4;
    *threads = 512;
    return SUCCESS;
}

Status cuOccupancyMaxActiveClusters(int *clusters, struct Function *function, const void *config) {
    (void)function, (void)config;
    ENTER_CONTEXT("");
    *clusters = MULTIPROCESSORS;
    return SUCCESS;
}

size_t arguments_of(void **extra, unsigned char *into, size_t room) {
    const void *bytes = NULL;
    size_t size = 0;
    for (void **at = extra; at && *at; at += 2) {
        if ((uintptr_t)at[0] == 1) bytes = at[1];
        if ((uintptr_t)at[0] == 2) size = *(size_t *)at[1];
    }
    if (bytes && size <= room) memcpy(into, bytes, size);
    return size;
}

static Status needed_bytes(struct Function *function) {
    size_t last = function->parameters;
    return last ? (Status)(function->offsets[last - 1] + function->sizes[last - 1]) : 0;
}

/* Writes as a kernel does: where nothing may be written the device is lost. */
static void store(uint64_t to, unsigned value) {
    struct iovec from = {&value, sizeof value}, into = {(void *)(uintptr_t)to, sizeof value};
    if (process_vm_writev(getpid(), &from, 1, &into, 1, 0) != sizeof value) lose(ILLEGAL_ADDRESS);
}

static void run_by_name(const char *name, const unsigned char *bytes, const struct Launch *launch, struct Module *module) {
    unsigned long long pointer, second, third;
    unsigned value, count;
    memcpy(&pointer, bytes, 8), memcpy(&value, bytes + 8, 4), memcpy(&count, bytes + 12, 4);
    memcpy(&second, bytes + 8, 8), memcpy(&third, bytes + 16, 8);
    unsigned *words = (unsigned *)(uintptr_t)pointer;
    unsigned blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
    unsigned threads = blocks * launch->block[0] * launch->block[1] * launch->block[2];
    if (!strcmp(name, "set")) for (unsigned at = 0; at < count; at++) words[at] = value;
    if (!strcmp(name, "first_of")) memcpy(words, bytes + 48, 4);
    if (!strcmp(name, "fault")) lose(ILLEGAL_ADDRESS);
    if (!strcmp(name, "fill_index")) for (unsigned at = 0; at < value && at < threads; at++) words[at] = at;
    if (!strcmp(name, "increment")) for (unsigned at = 0; at < value && at < threads; at++) words[at]++;
    if (!strcmp(name, "visit")) for (unsigned at = 0; at < threads; at++) words[at]++;
    if (!strcmp(name, "store_value") || !strcmp(name, "through_shared")) store(pointer, value);
    if (!strcmp(name, "meet")) words[0] += blocks, words[1] += blocks;
    if (!strcmp(name, "bump_variable")) words[0] = module->value++;
    if (!strcmp(name, "copy_words")) {
        memcpy(&count, bytes + 16, 4);
        memcpy((void *)(uintptr_t)second, words, 4ull * count);
    }
    if (!strcmp(name, "axpy")) {
        float factor, *x = (float *)(uintptr_t)second, *y = (float *)(uintptr_t)third;
        memcpy(&factor, bytes, 4), memcpy(&count, bytes + 24, 4);
        for (unsigned at = 0; at < count; at++) y[at] = fmaf(factor, x[at], y[at]);
    }
}

/* How packed arguments lie beside such a parameter is not documented: they are given one by one. */
static int is_wide(struct Function *function) {
    for (size_t at = 0; at < function->parameters; at++)
        if (function->sizes[at] >= 32) return 1;
    return 0;
}

Status launch_kernel(struct Function *function, const struct Launch *launch, void **parameters, void **extra, struct Stream *stream) {
    unsigned char bytes[256] = {0};
    size_t size = 0;
    if (!parameters && is_wide(function)) return INVALID_VALUE;
    if (!parameters) return run_kernel(function, launch, extra, stream);
    for (size_t at = 0; at < function->parameters; at++) {
        size = function->offsets[at] + function->sizes[at];
        if (size > sizeof bytes) return INVALID_VALUE;
        memcpy(bytes + function->offsets[at], parameters[at], function->sizes[at]);
    }
    void *packed[] = {(void *)1, bytes, (void *)2, &size, NULL};
    return run_kernel(function, launch, packed, stream);
}

Status run_kernel(struct Function *function, const struct Launch *launch, void **extra, struct Stream *stream) {
    unsigned char bytes[256] = {0};
    size_t size = arguments_of(extra, bytes, sizeof bytes);
    if (size != (size_t)needed_bytes(function)) return INVALID_VALUE;
    if (launch->shared > (unsigned)function->dynamic_shared_bytes) return INVALID_VALUE;
    if (!strcmp(function->name, "crash")) lose(ILLEGAL_ADDRESS);
    if (!strcmp(function->name, "stall")) stream->stalled = 1;
    if (!strcmp(function->name, "resume")) stream->stalled = 0;
    run_by_name(function->name, bytes, launch, function->module);
    return SUCCESS;
}

Status cuLaunchKernel(struct Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, struct Stream *stream, void **parameters, void **extra) {
    ENTER_CONTEXT("%s %ux%ux%u %ux%ux%u %u", function->name, gx, gy, gz, bx, by, bz, shared);
    struct Launch launch = {{gx, gy, gz}, {bx, by, bz}, shared};
    return launch_kernel(function, &launch, parameters, extra, stream);
}

struct Attribute { unsigned id; char pad[4]; union { char pad[64]; int cooperative; unsigned cluster[3]; } value; };
struct Config { struct Launch launch; struct Stream *stream; struct Attribute *attributes; unsigned count; };

Status cuLaunchKernelEx(const struct Config *config, struct Function *function, void **parameters, void **extra) {
    int cooperative = 0;
    unsigned cluster = 0;
    for (unsigned at = 0; at < config->count; at++) {
        if (config->attributes[at].id == 2) cooperative = config->attributes[at].value.cooperative;
        if (config->attributes[at].id == 4) cluster = config->attributes[at].value.cluster[0];
    }
    ENTER_CONTEXT("%s cooperative %d cluster %u", function->name, cooperative, cluster);
    return launch_kernel(function, &config->launch, parameters, extra, config->stream);
}
