// A function that is called reads the element before the first one of its local array.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

__device__ __noinline__ unsigned bug_pick(const unsigned* x, int at) {
    unsigned a[8];
    for (int i = 0; i < 8; i++) a[i] = x[i];
    return a[at - 1]; // expect: out-of-bounds
}

__device__ __noinline__ unsigned fixed_pick(const unsigned* x, int at) {
    unsigned a[8];
    for (int i = 0; i < 8; i++) a[i] = x[i];
    return a[at];
}

extern "C" __global__ void bug_bounds_local_before_callee(const unsigned* x, unsigned* y) {
    y[threadIdx.x] = bug_pick(x, x[threadIdx.x] & 7);
}

extern "C" __global__ void fixed_bounds_local_before_callee(const unsigned* x, unsigned* y) {
    y[threadIdx.x] = fixed_pick(x, x[threadIdx.x] & 7);
}
