// One warp goes around a barrier in one pass in the middle of a loop, and meets the others one pass later.
// launch: grid 1 block 128
// args: in u32 128; out u32 128; value u32 6

extern "C" __global__ void bug_barrier_skipped_once(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned k = 0; k < n; ++k) {
        s[t] = x[t] + k;
        if (k != 3 || t >= 32) __syncthreads(); // expect: barrier
        sum += s[t];
    }
    y[t] = sum;
}

extern "C" __global__ void fixed_barrier_skipped_once(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned k = 0; k < n; ++k) {
        s[t] = x[t] + k;
        if (k != 3) __syncthreads();
        sum += s[t];
    }
    y[t] = sum;
}
