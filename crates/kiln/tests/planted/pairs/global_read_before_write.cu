// Threads of a block exchange through global memory without a barrier.
// launch: grid 1 block 128
// args: in u32 128; inout u32 128; out u32 128

extern "C" __global__ void bug_global_read_before_write(const unsigned* x, unsigned* tmp, unsigned* y) {
    unsigned t = threadIdx.x;
    tmp[t] = x[t] * 2; // expect: race
    y[t] = tmp[127 - t]; // expect: race
}

extern "C" __global__ void fixed_global_read_before_write(const unsigned* x, unsigned* tmp, unsigned* y) {
    unsigned t = threadIdx.x;
    tmp[t] = x[t] * 2;
    __syncthreads();
    y[t] = tmp[127 - t];
}
