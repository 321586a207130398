// A reduction adds what it takes from lanes that have exited; the twin takes the same values and drops them.
// launch: grid 1 block 32
// args: in u32 32; returned u32 20

extern "C" __global__ void bug_warp_shuffle_dropped(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    if (t >= 20) return;
    unsigned v = x[t];
    for (unsigned i = 16; i; i /= 2) v += __shfl_down_sync(0x000fffff, v, i); // expect: inactive-lane
    y[t] = v; // expect: inactive-lane
}

extern "C" __global__ void fixed_warp_shuffle_dropped(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    if (t >= 20) return;
    unsigned v = x[t];
    for (unsigned i = 16; i; i /= 2) {
        unsigned other = __shfl_down_sync(0x000fffff, v, i);
        if (t + i < 20) v += other;
    }
    y[t] = v;
}
