// A flag is released by one block and stored again by another, relaxed: a block that waits for the second value and misses the first is ordered behind nothing.
// launch: grid 3 block 1
// args: inout u32 1; inout u32 1; out u32 1

__device__ unsigned load_acquire(unsigned* p) {
    unsigned v;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ unsigned load_relaxed(unsigned* p) {
    unsigned v;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ void store_release(unsigned* p, unsigned v) { asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
__device__ void store_relaxed(unsigned* p, unsigned v) { asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

extern "C" __global__ void bug_blocks_release_overwritten(unsigned* flag, unsigned* x, unsigned* y) {
    if (blockIdx.x == 2) {
        *x = 5; // expect: race
        store_release(flag, 1);
    } else if (blockIdx.x == 1) {
        while (load_relaxed(flag) == 0) {}
        store_relaxed(flag, 2);
    } else {
        while (load_acquire(flag) != 2) {}
        *y = *x; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_release_overwritten(unsigned* flag, unsigned* x, unsigned* y) {
    if (blockIdx.x == 2) {
        *x = 5;
        store_release(flag, 1);
    } else if (blockIdx.x == 1) {
        while (load_acquire(flag) == 0) {}
        store_release(flag, 2);
    } else {
        while (load_acquire(flag) != 2) {}
        *y = *x;
    }
}
