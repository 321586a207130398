/* Mistakes that were found in the tests of public projects, each reduced to one kernel. The first argument says which; "right" after it runs the kernel as it was meant.
 *
 * slice: CubeCL, reinterpret_slice.rs: a shared array of 4 bytes is taken for a longer one, and read at byte 8.
 * threads: numba, test_dispatcher.py: 16 threads write an array of 10 elements.
 * local: numba, test_localmem.py: a local array of 1 element is written 10 times.
 * plane: CubeCL, synchronization.rs: the second warp reads what thread 0 writes, with a barrier for warps alone.
 * descriptor: numba, test_cuda_driver.py: a shared array of 4 bytes is changed as if it were a tensor map, which has 128. */
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

/* Thread 0 writes, each of n threads reads, and between that there is a barrier for a warp. */
static const char PLANE[] = HEAD
    ".visible .entry plane(.param .u64 p, .param .u32 n)\n{\n"
    ".shared .align 4 .b8 one[4];\n.reg .pred %q;\n.reg .b32 %r<4>;\n.reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [p];\ncvta.to.global.u64 %d2, %d1;\nmov.u32 %r1, %tid.x;\n"
    "setp.ne.u32 %q, %r1, 0;\n@%q bra written;\nmov.u32 %r2, 1;\nst.shared.u32 [one], %r2;\nwritten:\n"
    "bar.warp.sync 0xffffffff;\nld.shared.u32 %r3, [one];\n"
    "mul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d2, %d3;\nst.global.u32 [%d4], %r3;\nret;\n}\n";

/* Changes the rank of a tensor map in shared memory where none has room, unless n is 0. */
static const char DESCRIPTOR[] =
    ".version 8.3\n.target sm_90a\n.address_size 64\n"
    ".visible .entry descriptor(.param .u64 p, .param .u32 n)\n{\n"
    ".shared .align 128 .b8 small[4];\n.reg .pred %q;\n.reg .b32 %r<3>;\n"
    "ld.param.u32 %r1, [n];\nsetp.eq.u32 %q, %r1, 0;\n@%q bra done;\nmov.u32 %r2, small;\n"
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 2;\ndone:\nret;\n}\n";

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
    OK(cuMemAlloc_v2(&p, strcmp(which, "plane") ? 40 : 256));
    if (!strcmp(which, "slice")) {
        run(loaded(SLICE, "slice"), 1, p, right ? 0 : 8);
    } else if (!strcmp(which, "threads")) {
        run(loaded(THREADS, "threads"), right ? 10 : 16, p, 10);
    } else if (!strcmp(which, "local")) {
        run(loaded(LOCAL, "local_array"), 1, p, right ? 1 : 10);
    } else if (!strcmp(which, "plane")) {
        run(loaded(PLANE, "plane"), right ? 32 : 64, p, 0);
    } else if (!strcmp(which, "descriptor")) {
        run(loaded(DESCRIPTOR, "descriptor"), 1, p, !right);
    }
    return 0;
}
