// Shared memory is read before it is written.
// launch: grid 1 block 64
// args: in u32 64; returned u32 64

extern "C" __global__ void bug_uninitialised_shared(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 48) s[t] = x[t];
    __syncthreads();
    y[t] = s[63 - t]; // expect: uninitialised
}

extern "C" __global__ void fixed_uninitialised_shared(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (true) s[t] = x[t];
    __syncthreads();
    y[t] = s[63 - t];
}
