// The same in a loop that the compiler unrolls: the copies of the barrier are gone around, the last one right before the end.
// launch: grid 1 block 128
// args: in u32 448; out u32 128; value u32 448

extern "C" __global__ void bug_barrier_tile_guard_unrolled(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned tile = 0; tile < 4; ++tile) {
        if (tile * 128 + t < n) {
            s[t] = x[tile * 128 + t];
            __syncthreads(); // expect: barrier
        }
        sum += s[t];
    }
    y[t] = sum;
}

extern "C" __global__ void fixed_barrier_tile_guard_unrolled(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned tile = 0; tile < 4; ++tile) {
        // Early returns in an unrolled loop, too: they store what they have.
        if (tile * 128 + t >= n) {
            y[t] = sum;
            return;
        }
        s[t] = x[tile * 128 + t];
        __syncthreads();
        sum += s[t];
    }
    y[t] = sum;
}
