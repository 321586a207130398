// An element of a local array is read that was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_uninitialised_local(const unsigned* x, unsigned* y) {
    volatile unsigned a[8];
    for (unsigned i = 0; i < 7; ++i) a[i] = x[i];
    y[threadIdx.x] = a[x[threadIdx.x] % 8]; // expect: uninitialised
}

extern "C" __global__ void fixed_uninitialised_local(const unsigned* x, unsigned* y) {
    volatile unsigned a[8];
    for (unsigned i = 0; i < 8; ++i) a[i] = x[i];
    y[threadIdx.x] = a[x[threadIdx.x] % 8];
}
