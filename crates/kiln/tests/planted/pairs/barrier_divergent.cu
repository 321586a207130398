// The two sides of a branch wait at different barriers in the source.
// launch: grid 1 block 32
// args: in u32 32; out u32 32

extern "C" __global__ void bug_barrier_divergent(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (x[t] % 2) { s[t] = 1; asm volatile("barrier.sync.aligned 0;" ::: "memory"); } else { s[t] = 2; asm volatile("barrier.sync.aligned 0;" ::: "memory"); } // expect: barrier
    y[t] = s[31 - t];
}

extern "C" __global__ void fixed_barrier_divergent(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    s[t] = 2 - x[t] % 2; __syncthreads();
    y[t] = s[31 - t];
}
