// The last rounds of a reduction rely on the lanes of a warp running in step.
// launch: grid 1 block 64
// args: in u32 64; out u32 1

extern "C" __global__ void bug_warp_reduction(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        for (unsigned half = 32; half > 0; half /= 2) {
            unsigned v = s[t] + s[t + half]; // expect: race
            s[t] = v; // expect: race
        }
    }
    if (t == 0) y[0] = s[0]; // expect: race
}

extern "C" __global__ void fixed_warp_reduction(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        for (unsigned half = 32; half > 0; half /= 2) {
            unsigned v = s[t] + s[t + half];
            __syncwarp();
            s[t] = v;
            __syncwarp();
        }
    }
    if (t == 0) y[0] = s[0];
}
