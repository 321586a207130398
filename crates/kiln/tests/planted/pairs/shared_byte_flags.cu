// Neighbouring bytes are packed by reading and writing the whole word.
// launch: grid 1 block 64
// args: in u32 64; out u32 16

extern "C" __global__ void bug_shared_byte_flags(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[16];
    unsigned t = threadIdx.x;
    if (t < 16) s[t] = 0;
    __syncthreads();
    s[t / 4] |= (x[t] & 255) << (t % 4 * 8); // expect: race
    __syncthreads();
    if (t < 16) y[t] = s[t];
}

extern "C" __global__ void fixed_shared_byte_flags(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[16];
    unsigned t = threadIdx.x;
    if (t < 16) s[t] = 0;
    __syncthreads();
    ((unsigned char*)s)[t] = x[t];
    __syncthreads();
    if (t < 16) y[t] = s[t];
}
