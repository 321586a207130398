// A 64-bit word of shared memory at an odd word.
// launch: grid 1 block 16
// args: in u32 64; out u32 16

extern "C" __global__ void bug_misaligned_shared(const unsigned* x, unsigned* y) {
    __shared__ __align__(16) unsigned s[64];
    unsigned t = threadIdx.x;
    for (unsigned i = t; i < 64; i += 16) s[i] = x[i];
    __syncthreads();
    y[t] = *(volatile unsigned long long*)&s[2 * t + 1]; // expect: misaligned
}

extern "C" __global__ void fixed_misaligned_shared(const unsigned* x, unsigned* y) {
    __shared__ __align__(16) unsigned s[64];
    unsigned t = threadIdx.x;
    for (unsigned i = t; i < 64; i += 16) s[i] = x[i];
    __syncthreads();
    y[t] = *(volatile unsigned long long*)&s[2 * t + 0];
}
