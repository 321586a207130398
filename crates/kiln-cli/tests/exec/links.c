/* Links with the archive of the device runtime, with objects and with archives. The first argument says which.
 *
 * grid: a grid that meets twice by functions of the device runtime.  early: one that does not meet.  missing: the archive is not linked.
 * alone: one that was not launched as a cooperative one.  object: PTX in the fat binary of an object. */
#include "driver_api.h"

enum { PTX = 1, OBJECT = 3, LIBRARY = 4, BLOCKS = 3, THREADS = 64 };

/* What the library looks for in an archive of machine code. */
static const char RUNTIME[] = "!<arch>\ncuda_device_runtime.o/ 0           0     0     644     4         `\nbody";

/* Each block writes a number, all meet, and each adds up the numbers of all. The handle is 0 for a launch that is not cooperative. */
#define GRID_HEAD                                                                                                   \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                                               \
    ".extern .func (.param .b64 out) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"                                \
    ".extern .func (.param .b32 out) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"                   \
    ".visible .entry meet(.param .u64 p, .param .u32 n)\n{\n"                                                       \
    ".reg .pred %q, %f;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n.param .b32 scope;\n.param .b64 given;\n"              \
    ".param .b64 grid;\n.param .b32 flags;\n.param .b32 code;\n"                                                    \
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\ncvta.to.global.u64 %d2, %d1;\n"                                \
    "st.param.b32 [scope], 1;\ncall (given), cudaCGGetIntrinsicHandle, (scope);\nld.param.b64 %d8, [given];\n"      \
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %tid.x;\nsetp.ne.u32 %q, %r3, 63;\n@%q bra met;\n"                        \
    "mul.wide.u32 %d3, %r2, 4;\nadd.s64 %d4, %d2, %d3;\nadd.u32 %r4, %r2, 1;\nst.global.u32 [%d4], %r4;\nmet:\n"
#define GRID_MEET                                                                                                   \
    "st.param.b64 [grid], %d8;\nst.param.b32 [flags], 0;\ncall (code), cudaCGSynchronize, (grid, flags);\n"         \
    "ld.param.b32 %r8, [code];\n"
#define GRID_TAIL                                                                                                   \
    "mov.u32 %r5, 0;\nmov.u32 %r6, 0;\nmov.u64 %d5, %d2;\n"                                                         \
    "again:\nld.global.u32 %r7, [%d5];\nadd.u32 %r5, %r5, %r7;\nadd.s64 %d5, %d5, 4;\nadd.u32 %r6, %r6, 1;\n"       \
    "setp.lt.u32 %f, %r6, %r1;\n@%f bra again;\n"
#define GRID_END                                                                                                    \
    "@%q bra done;\nmad.lo.u32 %r5, %r8, 1000, %r5;\nst.global.u32 [%d4], %r5;\ndone:\nret;\n}\n"
static const char MEET[] = GRID_HEAD GRID_MEET GRID_TAIL GRID_MEET GRID_END;
static const char EARLY[] = GRID_HEAD GRID_TAIL GRID_MEET GRID_END;

static int complete(handle link, handle *function, const char *name) {
    void *code;
    size_t bytes;
    handle module;
    int answered = cuLinkComplete(link, &code, &bytes);
    if (answered) return answered;
    OK(cuModuleLoadData(&module, code));
    OK(cuModuleGetFunction(function, module, name));
    return 0;
}

static handle linked(const char *text) {
    handle link, function;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, PTX, (void *)text, strlen(text) + 1, "meet", 0, NULL, NULL));
    OK(cuLinkAddData_v2(link, LIBRARY, (void *)RUNTIME, sizeof RUNTIME, "runtime", 0, NULL, NULL));
    OK(complete(link, &function, "meet"));
    OK(cuLinkDestroy(link));
    return function;
}

static void grid(const char *text) {
    unsigned back[BLOCKS], blocks = BLOCKS;
    address p;
    handle function = linked(text);
    OK(cuMemAlloc_v2(&p, sizeof back));
    OK(cuMemsetD32_v2(p, 0, BLOCKS));
    void *parameters[] = {&p, &blocks};
    OK(cuLaunchCooperativeKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters));
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    for (int i = 0; i < BLOCKS && text == MEET; i++) TRUE(back[i] == 6);
}

/* A launch that is not a cooperative one: the function answers an error and nothing waits. */
static void alone(void) {
    unsigned back, blocks = 1;
    address p;
    handle function = linked(MEET);
    OK(cuMemAlloc_v2(&p, sizeof back));
    void *parameters[] = {&p, &blocks};
    OK(cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
}

static void missing(void) {
    handle link, function;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, PTX, (void *)MEET, sizeof MEET, "meet", 0, NULL, NULL));
    WANT(300, complete(link, &function, "meet"));
    OK(cuLinkDestroy(link));
}

/* An object with something before its fat binary; machine code alone is refused. */
static void object(void) {
    struct { char before[24]; unsigned magic; unsigned short version, head; unsigned long long size;
             unsigned short kind, entry_version; unsigned entry_head; unsigned long long bytes; char rest[48]; char text[1024]; } it;
    handle link, function;
    address p;
    unsigned back;
    memset(&it, 0, sizeof it);
    strcpy(it.before, "object");
    it.magic = 0xba55ed50, it.version = 1, it.head = 16, it.size = 64 + sizeof it.text;
    it.kind = 1, it.entry_head = 64, it.bytes = sizeof it.text;
    strcpy(it.text, ADD_ONE);
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    WANT(209, cuLinkAddData_v2(link, OBJECT, (void *)"\177ELF and nothing else", 20, "none", 0, NULL, NULL));
    WANT(209, cuLinkAddData_v2(link, LIBRARY, (void *)"!<arch>\n", 8, "none", 0, NULL, NULL));
    OK(cuLinkAddData_v2(link, OBJECT, &it, sizeof it, "object", 0, NULL, NULL));
    OK(complete(link, &function, "add_one"));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuMemsetD32_v2(p, 4, 1));
    OK(launch(function, p, 1, NULL));
    OK(cuMemcpyDtoH_v2(&back, p, 4));
    TRUE(back == 5);
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    begin();
    if (!strcmp(which, "grid")) grid(MEET);
    if (!strcmp(which, "early")) grid(EARLY);
    if (!strcmp(which, "alone")) alone();
    if (!strcmp(which, "missing")) missing();
    if (!strcmp(which, "object")) object();
    return 0;
}
