// Counts in shared memory without atomics.
// launch: grid 1 block 256
// args: in u32 256; out u32 16

extern "C" __global__ void bug_shared_histogram(const unsigned* x, unsigned* y) {
    __shared__ unsigned bins[16];
    unsigned t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    bins[x[t] % 16] += 1; // expect: race
    __syncthreads();
    if (t < 16) y[t] = bins[t];
}

extern "C" __global__ void fixed_shared_histogram(const unsigned* x, unsigned* y) {
    __shared__ unsigned bins[16];
    unsigned t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[x[t] % 16], 1);
    __syncthreads();
    if (t < 16) y[t] = bins[t];
}
