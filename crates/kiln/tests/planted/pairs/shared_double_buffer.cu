// A double buffer with one barrier too few: the buffer is filled again while it is read.
// launch: grid 1 block 64
// args: in u32 512; out u32 64

extern "C" __global__ void bug_shared_double_buffer(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[2][64];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned k = 0; k < 8; ++k) {
        s[0][t] = x[k * 64 + t]; // expect: race
        __syncthreads();
        sum += s[0][63 - t]; // expect: race
    }
    y[t] = sum;
}

extern "C" __global__ void fixed_shared_double_buffer(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[2][64];
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned k = 0; k < 8; ++k) {
        s[k % 2][t] = x[k * 64 + t];
        __syncthreads();
        sum += s[k % 2][63 - t];
    }
    y[t] = sum;
}
