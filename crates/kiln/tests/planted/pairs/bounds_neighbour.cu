// A kernel writes past its buffer into the next one of the heap.
// launch: grid 1 block 256
// args: out u32 128; inout u32 128; value u32 128

extern "C" __global__ void bug_bounds_neighbour(unsigned* y, unsigned* z, unsigned n) {
    unsigned i = threadIdx.x;
    if (true) y[i] = i; // expect: out-of-bounds
    if (i == 0) z[0] = 1;
}

extern "C" __global__ void fixed_bounds_neighbour(unsigned* y, unsigned* z, unsigned n) {
    unsigned i = threadIdx.x;
    if (i < n) y[i] = i;
    if (i == 0) z[0] = 1;
}
