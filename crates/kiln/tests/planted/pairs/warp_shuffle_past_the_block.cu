// A block of 48 threads shuffles in its second warp from lanes that do not exist.
// launch: grid 1 block 48
// args: in u32 48; returned u32 48

extern "C" __global__ void bug_warp_shuffle_past_the_block(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t];
    unsigned lanes = t < 32 ? 0xffffffff : 0xffffffff;
    y[t] = v + __shfl_xor_sync(lanes, v, 16); // expect: inactive-lane
}

extern "C" __global__ void fixed_warp_shuffle_past_the_block(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x, v = x[t];
    unsigned lanes = t < 32 ? 0xffffffff : 0x0000ffff;
    y[t] = v + __shfl_xor_sync(lanes, v, 16 * (t < 32));
}
