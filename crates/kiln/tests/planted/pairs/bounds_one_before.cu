// The first thread reads the element before the array.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_bounds_one_before(const unsigned* x, unsigned* y) {
    int i = threadIdx.x;
    y[i] = x[i] - x[i - 1]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_one_before(const unsigned* x, unsigned* y) {
    int i = threadIdx.x;
    y[i] = x[i] - (i ? x[i - 1] : 0);
}
