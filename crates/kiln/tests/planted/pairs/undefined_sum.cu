// A sum takes in one element too many, and the host reads it.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_sum(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16], sum = 0;
    if (t < n) s[t] = x[t];
    __syncthreads();
    for (unsigned i = 0; i <= n; ++i) sum += s[i]; // expect: uninitialised
    y[t] = sum; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_sum(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16], sum = 0;
    if (t < n) s[t] = x[t];
    __syncthreads();
    for (unsigned i = 0; i < n; ++i) sum += s[i];
    y[t] = sum;
}
