// A word is overwritten while another thread may still read it.
// launch: grid 1 block 128
// args: in u32 128; out u32 128

extern "C" __global__ void bug_shared_write_after_read(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    unsigned v = s[(t + 64) % 128]; // expect: race
    s[t] = v + 1; // expect: race
    __syncthreads();
    y[t] = s[t];
}

extern "C" __global__ void fixed_shared_write_after_read(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    unsigned v = s[(t + 64) % 128];
    __syncthreads();
    s[t] = v + 1;
    __syncthreads();
    y[t] = s[t];
}
