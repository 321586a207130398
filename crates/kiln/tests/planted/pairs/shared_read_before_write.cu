// A thread reads its neighbour's word of shared memory, with no barrier after the write.
// launch: grid 1 block 128
// args: in u32 128; out u32 128

extern "C" __global__ void bug_shared_read_before_write(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t]; // expect: race
    y[t] = s[(t + 33) % 128]; // expect: race
}

extern "C" __global__ void fixed_shared_read_before_write(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[128];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[(t + 33) % 128];
}
