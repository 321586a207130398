// A thread hands out a pointer to its local array, and the others read through it: each would read its own memory.
// launch: grid 1 block 64
// args: in u32 64; out u32 64

extern "C" __global__ void bug_bounds_local_of_other_thread(const unsigned* x, unsigned* y) {
    __shared__ unsigned* row;
    unsigned t = threadIdx.x, own[4];
    for (unsigned i = 0; i < 4; ++i) own[i] = x[(t + i) % 64];
    if (t == 0) row = own;
    __syncthreads();
    y[t] = row[t % 4]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_local_of_other_thread(const unsigned* x, unsigned* y) {
    __shared__ unsigned row[4];
    unsigned t = threadIdx.x, own[4];
    for (unsigned i = 0; i < 4; ++i) own[i] = x[(t + i) % 64];
    unsigned* mine = t == 0 ? row : own;
    if (t == 0) for (unsigned i = 0; i < 4; ++i) row[i] = own[i];
    __syncthreads();
    y[t] = row[t % 4] + mine[t % 4];
}
