// Counters are added to that were never set.
// launch: grid 1 block 64
// args: in u32 64; out u32 64

extern "C" __global__ void bug_uninitialised_atomic(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    atomicAdd(&y[x[t] ^ 1], 1); // expect: uninitialised
}

extern "C" __global__ void fixed_uninitialised_atomic(const unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = 0;
    __syncthreads();
    atomicAdd(&y[x[t] ^ 1], 1);
}
