// An array is shifted in place.
// launch: grid 1 block 128
// args: inout u32 129

extern "C" __global__ void bug_global_write_after_read(unsigned* y) {
    unsigned t = threadIdx.x;
    unsigned v = y[t + 1]; // expect: race
    y[t] = v; // expect: race
}

extern "C" __global__ void fixed_global_write_after_read(unsigned* y) {
    unsigned t = threadIdx.x;
    unsigned v = y[t + 1];
    __syncthreads();
    y[t] = v;
}
