// Blocks write ranges that overlap by one element.
// launch: grid 4 block 64
// args: out u32 300

extern "C" __global__ void bug_blocks_overlap(unsigned* y) {
    unsigned i = blockIdx.x * 63 + threadIdx.x;
    y[i] = threadIdx.x; // expect: race
}

extern "C" __global__ void fixed_blocks_overlap(unsigned* y) {
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    y[i] = threadIdx.x;
}
