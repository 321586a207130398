// Even warps wait at a barrier in even passes and odd warps in odd ones: all wait equally often, and never in the same pass.
// launch: grid 1 block 128
// args: in u32 128; out u32 128; value u32 6

extern "C" __global__ void bug_barrier_warps_alternate(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (unsigned k = 0; k < n; ++k) {
        s[t] = x[t] + k;
        if ((k + t / 32) % 2 == 0) __syncthreads(); // expect: barrier
        sum += s[t];
    }
    y[t] = sum;
}

extern "C" __global__ void fixed_barrier_warps_alternate(const unsigned* x, unsigned* y, unsigned n) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (unsigned k = 0; k < n; ++k) {
        s[t] = x[t] + k;
        if (k % 2 == 0) __syncthreads();
        if ((k + t / 32) % 2 == 0) sum += s[t];
    }
    y[t] = sum;
}
