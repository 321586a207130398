/* Mistakes that were found in the tests of public projects, each reduced to one kernel. The first argument says which; "right" after it runs the kernel as it was meant.
 *
 * slice: CubeCL, reinterpret_slice.rs: a shared array of 4 bytes is taken for a longer one, and read at byte 8.
 * threads: numba, test_dispatcher.py: 16 threads write an array of 10 elements.
 * local: numba, test_localmem.py: a local array of 1 element is written 10 times. */
#include "driver_api.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* Each thread of n copies a word of shared memory at a byte offset that it is given. */
static const char SLICE[] = HEAD
    ".visible .entry slice(.param .u64 p, .param .u32 n)\n{\n"
    ".shared .align 4 .b8 part[4];\n.reg .b32 %r<5>;\n.reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\ncvta.to.global.u64 %d2, %d1;\n"
    "mov.u32 %r2, 7;\nst.shared.u32 [part], %r2;\nbar.sync 0;\n"
    "mov.u32 %r3, part;\nadd.s32 %r3, %r3, %r1;\nld.shared.u32 %r4, [%r3];\n"
    "st.global.u32 [%d2], %r4;\nret;\n}\n";

/* Each thread writes its element, and none asks how many there are. */
static const char THREADS[] = HEAD
    ".visible .entry threads(.param .u64 p, .param .u32 n)\n{\n"
    ".reg .b32 %r<3>;\n.reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [p];\ncvta.to.global.u64 %d2, %d1;\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d2, %d3;\nst.global.u32 [%d4], %r1;\nret;\n}\n";

/* Writes n elements of an array in local memory that has one, and stores the first. */
static const char LOCAL[] = HEAD
    ".visible .entry local_array(.param .u64 p, .param .u32 n)\n{\n"
    ".local .align 4 .b8 kept[4];\n.reg .pred %q;\n.reg .b32 %r<5>;\n.reg .b64 %d<6>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [n];\ncvta.to.global.u64 %d2, %d1;\n"
    "mov.u32 %r2, 0;\nmov.u64 %d3, kept;\n"
    "again:\nst.local.u32 [%d3], %r2;\nadd.s64 %d3, %d3, 4;\nadd.s32 %r2, %r2, 1;\n"
    "setp.lt.u32 %q, %r2, %r1;\n@%q bra again;\n"
    "ld.local.u32 %r3, [kept];\nst.global.u32 [%d2], %r3;\nret;\n}\n";

static handle loaded(const char *text, const char *name) {
    handle module, function;
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

/* One block; what it does wrong may end the launch with any code. */
static void run(handle function, unsigned threads, address p, unsigned n) {
    void *parameters[] = {&p, &n};
    OK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
    cuCtxSynchronize();
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    int right = count > 2 && !strcmp(words[2], "right");
    address p;
    begin();
    OK(cuMemAlloc_v2(&p, 40));
    if (!strcmp(which, "slice")) {
        run(loaded(SLICE, "slice"), 1, p, right ? 0 : 8);
    } else if (!strcmp(which, "threads")) {
        run(loaded(THREADS, "threads"), right ? 10 : 16, p, 10);
    } else if (!strcmp(which, "local")) {
        run(loaded(LOCAL, "local_array"), 1, p, right ? 1 : 10);
    }
    return 0;
}
