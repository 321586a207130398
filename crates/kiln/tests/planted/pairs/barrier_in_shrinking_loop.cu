// A reduction has its barrier in the branch: fewer threads reach it in each round, and the others end after their last round.
// launch: grid 1 block 256
// args: in u32 256; out u32 1

extern "C" __global__ void bug_barrier_in_shrinking_loop(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (unsigned d = blockDim.x / 2; d; d /= 2) {
        if (t < d) {
            s[t] += s[t + d];
            __syncthreads(); // expect: barrier
        }
    }
    if (t == 0) y[0] = s[0];
}

extern "C" __global__ void fixed_barrier_in_shrinking_loop(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (unsigned d = blockDim.x / 2; d; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) y[0] = s[0];
}
