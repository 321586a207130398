// The kernel writes an array and reads it through the read-only cache, which does not see the writes.
// launch: grid 1 block 64
// args: inout u32 64; out u32 64

extern "C" __global__ void bug_constant_read_of_written(unsigned* x, unsigned* y) {
    x[threadIdx.x] = threadIdx.x; // expect: non-coherent
    __syncthreads();
    y[threadIdx.x] = __ldg(x + 63 - threadIdx.x); // expect: non-coherent
}

extern "C" __global__ void fixed_constant_read_of_written(unsigned* x, unsigned* y) {
    x[threadIdx.x] = threadIdx.x;
    __syncthreads();
    y[threadIdx.x] = x[63 - threadIdx.x];
}
