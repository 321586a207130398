// An optional array that is null is used.
// launch: grid 1 block 32
// args: null; out u32 32

extern "C" __global__ void bug_bounds_null(const unsigned* x, unsigned* y) {
    y[threadIdx.x] = x[threadIdx.x]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_null(const unsigned* x, unsigned* y) {
    y[threadIdx.x] = (x ? x[threadIdx.x] : 7);
}
