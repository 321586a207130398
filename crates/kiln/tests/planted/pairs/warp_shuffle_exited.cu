// A shuffle takes values from lanes that have exited.
// launch: grid 1 block 32
// args: in u32 32; returned u32 24

extern "C" __global__ void bug_warp_shuffle_exited(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    if (t >= 24) return;
    unsigned v = x[t];
    y[t] = v + __shfl_xor_sync(0xffffffff, v, 16); // expect: inactive-lane
}

extern "C" __global__ void fixed_warp_shuffle_exited(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    if (t >= 24) return;
    unsigned v = x[t];
    y[t] = v + __shfl_xor_sync(0x00ffffff, v, 1);
}
