// A scan over a warp of which only the first half has values: upward they stay apart, downward the rest reaches them.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_scan(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncwarp();
    unsigned sum = s[t]; // expect: uninitialised
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned other = __shfl_down_sync(~0u, sum, d); // expect: uninitialised
        if (t + d < 32) sum += other; // expect: uninitialised
    }
    y[t] = t < n ? sum : 0; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_scan(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncwarp();
    unsigned sum = s[t];
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned other = __shfl_up_sync(~0u, sum, d);
        if (t >= d) sum += other;
    }
    y[t] = t < n ? sum : 0;
}
