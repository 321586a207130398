// A comparison with the next element is made in all threads, and the last one must not count.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_short_circuit(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned here = s[t], next = s[t + 1]; // expect: uninitialised
    bool rises = (t + 1 <= n) & (next > here); // expect: uninitialised
    y[t] = rises; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_short_circuit(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, n = x[16];
    if (t < n) s[t] = x[t];
    __syncthreads();
    unsigned here = s[t], next = s[t + 1];
    bool rises = (t + 1 < n) & (next > here);
    y[t] = rises;
}
