// Each warp takes its own elements in a loop with a barrier, and returns when it has none: the numbers of passes differ. The twin makes the same passes in
// all threads that have an element at all.
// launch: grid 1 block 128
// args: in u32 128; inout u32 128; value u32 11

extern "C" __global__ void bug_barrier_trips_by_warp(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    for (unsigned i = t / 32; i < n; i += 4) {
        s[t] = x[t] + i;
        __syncthreads(); // expect: barrier
        y[t] += s[t];
    }
}

extern "C" __global__ void fixed_barrier_trips_by_warp(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    if (t >= 96) return;
    for (unsigned i = 0; i < n; i += 4) {
        s[t] = x[t] + i;
        __syncthreads();
        if (i + t / 32 < n) y[t] += s[t];
    }
}
