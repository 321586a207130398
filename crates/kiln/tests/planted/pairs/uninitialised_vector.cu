// One element of a vector was never written, and it is used.
// launch: grid 1 block 8
// args: out u32 32; returned u32 8

extern "C" __global__ void bug_uninitialised_vector(unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    x[4 * t] = 1; x[4 * t + 1] = 2; x[4 * t + 2] = 3;
    volatile uint4* wide = (volatile uint4*)x;
    unsigned last = wide[t].w; // expect: uninitialised
    y[t] = last; // expect: uninitialised
}

extern "C" __global__ void fixed_uninitialised_vector(unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    x[4 * t] = 1; x[4 * t + 1] = 2; x[4 * t + 2] = 3;
    x[4 * t + 3] = 4;
    volatile uint4* wide = (volatile uint4*)x;
    unsigned last = wide[t].w;
    y[t] = last;
}
