// Some warps wait at a barrier in a branch while the others wait at the barrier behind it.
// launch: grid 1 block 128
// args: in u32 128; out u32 128; value u32 2

extern "C" __global__ void bug_barrier_two_places(const unsigned* x, unsigned* y, unsigned warps) {
    __shared__ unsigned s[128], r[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    r[t] = t;
    if (t / 32 < warps) {
        __syncthreads(); // expect: barrier
        r[t] = s[t ^ 31];
    }
    __syncthreads(); // expect: barrier
    y[t] = r[t];
}

extern "C" __global__ void fixed_barrier_two_places(const unsigned* x, unsigned* y, unsigned warps) {
    __shared__ unsigned s[128], r[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    r[t] = t;
    __syncthreads();
    if (t / 32 < warps) r[t] = s[t ^ 31];
    __syncthreads();
    y[t] = r[t];
}
