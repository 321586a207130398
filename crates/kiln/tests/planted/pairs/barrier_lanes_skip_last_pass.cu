// Lanes of one warp have no element in the last pass, go around the barrier, and return behind the loop. The twin ends the loop for all threads.
// launch: grid 1 block 64
// args: in u32 240; inout u32 240; value u32 240; value u32 4

extern "C" __global__ void bug_barrier_lanes_skip_last_pass(const unsigned* x, unsigned* y, unsigned n, unsigned tiles) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles; ++tile) {
        unsigned i = tile * 64 + t;
        if (i < n) {
            s[t] = x[i];
            __syncthreads(); // expect: barrier
            y[i] = s[t] + 1;
        }
    }
}

extern "C" __global__ void fixed_barrier_lanes_skip_last_pass(const unsigned* x, unsigned* y, unsigned n, unsigned tiles) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
#pragma unroll 1
    for (unsigned tile = 0; tile < tiles; ++tile) {
        unsigned i = tile * 64 + t;
        if (i < n) s[t] = x[i];
        __syncthreads();
        if (i < n) y[i] = s[t] + 1;
    }
}
