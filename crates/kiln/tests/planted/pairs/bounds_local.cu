// An index past the end of a local array, and out of the stack of the thread.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_bounds_local(const unsigned* x, unsigned* y) {
    unsigned a[8];
    for (unsigned i = 0; i < 8; ++i) a[i] = x[i];
    y[threadIdx.x] = a[x[threadIdx.x] * 64]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_local(const unsigned* x, unsigned* y) {
    unsigned a[8];
    for (unsigned i = 0; i < 8; ++i) a[i] = x[i];
    y[threadIdx.x] = a[x[threadIdx.x] % 8];
}
