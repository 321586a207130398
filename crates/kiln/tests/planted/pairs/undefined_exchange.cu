// What an exchange takes out was never put in.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_exchange(const unsigned* x, unsigned* y) {
    __shared__ unsigned slot;
    unsigned t = threadIdx.x;
    unsigned before = atomicExch(&slot, x[t]); // expect: uninitialised
    y[t] = before + 1; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_exchange(const unsigned* x, unsigned* y) {
    __shared__ unsigned slot;
    unsigned t = threadIdx.x;
    if (t == 0) slot = 0;
    __syncthreads();
    unsigned before = atomicExch(&slot, x[t]);
    y[t] = before + 1;
}
