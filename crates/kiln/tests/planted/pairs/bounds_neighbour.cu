// A kernel writes past its buffer into the next one of the heap, which the launch does not name.
// launch: grid 1 block 256
// args: out u32 128; beside u32 128; value u32 128

extern "C" __global__ void bug_bounds_neighbour(unsigned* y, unsigned n) {
    unsigned i = threadIdx.x;
    if (true) y[i] = i; // expect: undeclared
}

extern "C" __global__ void fixed_bounds_neighbour(unsigned* y, unsigned n) {
    unsigned i = threadIdx.x;
    if (i < n) y[i] = i;
}
