// Threads without a value vote.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_ballot(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned value = s[t]; // expect: uninitialised
    y[t] = __ballot_sync(~0u, value > 3); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_ballot(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned value = s[t];
    y[t] = __ballot_sync(~0u, t < n && value > 3);
}
