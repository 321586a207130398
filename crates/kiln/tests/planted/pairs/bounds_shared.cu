// A read past the end of shared memory.
// launch: grid 1 block 64
// args: in u32 64; out u32 64

extern "C" __global__ void bug_bounds_shared(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t + 1]; // expect: out-of-bounds
}

extern "C" __global__ void fixed_bounds_shared(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t + 1 < 64 ? t + 1 : 0];
}
