// Two threads write different values to one word of shared memory.
// launch: grid 1 block 64
// args: out u32 64

extern "C" __global__ void bug_shared_two_writers(unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = 0;
    __syncthreads();
    s[t / 2] = t; // expect: race
    __syncthreads();
    y[t] = s[t];
}

extern "C" __global__ void fixed_shared_two_writers(unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    s[t] = 0;
    __syncthreads();
    s[t] = t;
    __syncthreads();
    y[t] = s[t];
}
