// A scan in place reads a word in the interval in which another thread writes it.
// launch: grid 1 block 64
// args: in u32 64; out u32 64

extern "C" __global__ void bug_shared_scan(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (unsigned d = 1; d < 64; d *= 2) {
        unsigned v = t >= d ? s[t - d] : 0; // expect: race
        s[t] += v; // expect: race
        __syncthreads();
    }
    y[t] = s[t];
}

extern "C" __global__ void fixed_shared_scan(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (unsigned d = 1; d < 64; d *= 2) {
        unsigned v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    y[t] = s[t];
}
