// `n - 2 - i` goes below zero for the last thread.
// launch: grid 1 block 32
// args: in u32 32; out u32 32; value u32 32

extern "C" __global__ void bug_bounds_unsigned_underflow(const unsigned* x, unsigned* y, unsigned n) {
    unsigned i = threadIdx.x;
    y[i] = x[n - 2 - i]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_unsigned_underflow(const unsigned* x, unsigned* y, unsigned n) {
    unsigned i = threadIdx.x;
    y[i] = x[n - 1 - i];
}
