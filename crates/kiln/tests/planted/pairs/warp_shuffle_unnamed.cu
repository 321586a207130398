// A shuffle reads from a lane that its mask does not name.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_warp_shuffle_unnamed(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t];
    if (t < 16) v += __shfl_sync(0x0000ffff, v, t + 8); // expect: inactive-lane
    y[t] = v; // expect: inactive-lane
}

extern "C" __global__ void fixed_warp_shuffle_unnamed(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t];
    if (t < 16) v += __shfl_sync(0x0000ffff, v, t + 0);
    y[t] = v;
}
