// A barrier in a branch: some threads of a warp go around it and on with the code behind it.
// launch: grid 1 block 128
// args: in u32 128; out u32 128

extern "C" __global__ void bug_barrier_gone_around(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    if (t < 100) __syncthreads(); // expect: barrier
    y[t] = s[t];
}

extern "C" __global__ void fixed_barrier_gone_around(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t];
}
