// A stencil in place reads elements that another block writes.
// launch: grid 4 block 64
// args: inout u32 258; out u32 258

extern "C" __global__ void bug_blocks_stencil_in_place(unsigned* x, unsigned* y) {
    unsigned i = blockIdx.x * 64 + threadIdx.x + 1;
    unsigned v = x[i - 1] + x[i + 1]; // expect: race
    __syncthreads(); x[i] = v; y[i] = 0; // expect: race
}

extern "C" __global__ void fixed_blocks_stencil_in_place(unsigned* x, unsigned* y) {
    unsigned i = blockIdx.x * 64 + threadIdx.x + 1;
    unsigned v = x[i - 1] + x[i + 1];
    y[i] = v;
}
