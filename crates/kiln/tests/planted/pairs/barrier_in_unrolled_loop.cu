// A barrier in a branch of a loop that the compiler unrolls: the warps without work go around all of its copies.
// launch: grid 1 block 128
// args: in u32 128; out u32 1

extern "C" __global__ void bug_barrier_in_unrolled_loop(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (unsigned d = 64; d >= 1; d >>= 1) {
        if (t < d) {
            s[t] += s[t + d]; // expect: race
            __syncthreads();  // expect: barrier
        }
    }
    if (t == 0) y[0] = s[0];
}

extern "C" __global__ void fixed_barrier_in_unrolled_loop(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (unsigned d = 64; d >= 1; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) y[0] = s[0];
}
