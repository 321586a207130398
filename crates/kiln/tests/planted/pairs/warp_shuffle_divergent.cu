// A shuffle names lanes that do not take this branch.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_warp_shuffle_divergent(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t];
    if (t < 16) v += __shfl_down_sync(0xffffffff, v, 1); // expect: inactive-lane
    y[t] = v; // expect: inactive-lane
}

extern "C" __global__ void fixed_warp_shuffle_divergent(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t];
    if (t < 16) v += __shfl_down_sync(0x0000ffff, v, 1, 16);
    y[t] = v;
}
