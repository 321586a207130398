// A barrier in a branch: whole warps go around it, and then run a loop and a branch behind it. The twin lets them return early.
// launch: grid 1 block 128
// args: in u32 128; inout u32 128; value u32 5

extern "C" __global__ void bug_barrier_warps_skip_before_loop(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    if (t < 64) {
        s[t] = x[t];     // expect: race
        __syncthreads(); // expect: barrier
    }
    unsigned sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += s[i]; // expect: race
    if (sum > x[t]) y[t] = sum;                   // expect: uninitialised
}

extern "C" __global__ void fixed_barrier_warps_skip_before_loop(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    if (t >= 64) {
        if (x[t] > n) y[t] = 1;
        return;
    }
    s[t] = x[t];
    __syncthreads();
    unsigned sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += s[i];
    if (sum > x[t]) y[t] = sum;
}
