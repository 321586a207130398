// Each warp goes through the loop around a barrier as often as it has work, and then runs code with branches. The twin has the same trips for all warps.
// launch: grid 1 block 128
// args: in u32 128; inout u32 128; value u32 2

extern "C" __global__ void bug_barrier_warps_leave_loop_early(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, trips = n + t / 32, acc = 0;
    for (unsigned k = 0; k < trips; ++k) {
        s[t] = x[t] + k;
        __syncthreads(); // expect: barrier
        acc += s[t];
    }
    for (unsigned i = 0; i < n; ++i) acc += x[i];
    if (acc > 20) y[t] = acc;
}

extern "C" __global__ void fixed_barrier_warps_leave_loop_early(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, trips = n + blockDim.x / 32, acc = 0;
    for (unsigned k = 0; k < trips; ++k) {
        s[t] = x[t] + k;
        __syncthreads();
        acc += s[t];
    }
    for (unsigned i = 0; i < n; ++i) acc += x[i];
    if (acc > 20) y[t] = acc;
}
