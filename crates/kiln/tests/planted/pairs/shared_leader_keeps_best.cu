// Every warp keeps the best value in one variable. In the twin one thread does, and the compiler loads the variable in all threads before it asks which it is.
// launch: grid 1 block 64
// args: in u32 256; out u32 1

extern "C" __global__ void bug_shared_leader_keeps_best(const unsigned* x, unsigned* y) {
    __shared__ unsigned best;
    __shared__ unsigned w[2];
    unsigned t = threadIdx.x;
    if (t == 0) best = 0;
    for (unsigned i = 0; i < 4; ++i) {
        unsigned v = x[i * 64 + t];
        for (unsigned o = 16; o; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o));
        if (t % 32 == 0) w[t / 32] = v;
        __syncthreads();
        unsigned m = max(w[0], w[1]);
        if (t % 32 == 0 && m > best) best = m + t; // expect: race
        __syncthreads();
    }
    if (t == 0) *y = best;
}

extern "C" __global__ void fixed_shared_leader_keeps_best(const unsigned* x, unsigned* y) {
    __shared__ unsigned best;
    __shared__ unsigned w[2];
    unsigned t = threadIdx.x;
    if (t == 0) best = 0;
    for (unsigned i = 0; i < 4; ++i) {
        unsigned v = x[i * 64 + t];
        for (unsigned o = 16; o; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o));
        if (t % 32 == 0) w[t / 32] = v;
        __syncthreads();
        unsigned m = max(w[0], w[1]);
        if (t == 0 && m > best) best = m;
        __syncthreads();
    }
    if (t == 0) *y = best;
}
