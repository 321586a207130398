// A product is computed in all threads and selected in those that have a value; one thread without a value selects it, too.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_ternary(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned value = s[t]; // expect: uninitialised
    y[t] = t <= n ? value * 3 : 7; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_ternary(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned value = s[t];
    y[t] = t < n ? value * 3 : 7;
}
