// An output array is read before the kernel has written it.
// launch: grid 1 block 64
// args: in u32 64; returned u32 64

extern "C" __global__ void bug_uninitialised_global(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] += x[t]; // expect: uninitialised
}

extern "C" __global__ void fixed_uninitialised_global(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = x[t];
}
