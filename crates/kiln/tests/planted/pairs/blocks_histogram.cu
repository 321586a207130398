// Counts in global memory without atomics.
// launch: grid 4 block 64
// args: in u32 256; inout u32 8

extern "C" __global__ void bug_blocks_histogram(const unsigned* x, unsigned* bins) {
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    bins[x[i] % 8] += 1; // expect: race
}

extern "C" __global__ void fixed_blocks_histogram(const unsigned* x, unsigned* bins) {
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    atomicAdd(&bins[x[i] % 8], 1);
}
