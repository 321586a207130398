// A tree reduction without a barrier between its rounds.
// launch: grid 2 block 256
// args: in u32 512; out u32 2

extern "C" __global__ void bug_shared_reduction(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half]; // expect: race
    }
    if (t == 0) y[blockIdx.x] = s[0];
}

extern "C" __global__ void fixed_shared_reduction(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
