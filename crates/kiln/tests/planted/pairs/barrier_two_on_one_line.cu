// Both sides of a branch have a barrier, on one line of the source: the warps wait at different ones.
// launch: grid 1 block 128
// args: in u32 128; out u32 128; value u32 2

extern "C" __global__ void bug_barrier_two_on_one_line(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    // clang-format off
    if (t / 32 < n) { __syncthreads(); y[t] = s[t]; } else { s[t] += 1; __syncthreads(); y[t] = 2 * s[t]; } // expect: barrier
    // clang-format on
}

extern "C" __global__ void fixed_barrier_two_on_one_line(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    // clang-format off
    if (n == 2) { __syncthreads(); y[t] = s[t]; } else { s[t] += 1; __syncthreads(); y[t] = 2 * s[t]; }
    // clang-format on
}
