// A flag that the host reads is computed from a value that was never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_flag(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned value = s[t]; // expect: uninitialised
    y[t] = value > 3; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_flag(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < 2 * n) s[t] = x[t];
    __syncthreads();
    unsigned value = s[t];
    y[t] = value > 3;
}
