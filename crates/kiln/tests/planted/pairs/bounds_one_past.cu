// The last thread writes one element past the end.
// launch: grid 2 block 32
// args: out u32 60; value u32 60

extern "C" __global__ void bug_bounds_one_past(unsigned* y, unsigned n) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    if (i <= n) y[i] = i; // expect: undeclared
}

extern "C" __global__ void fixed_bounds_one_past(unsigned* y, unsigned n) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) y[i] = i;
}
