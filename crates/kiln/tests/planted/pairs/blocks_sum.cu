// Blocks add to one element without atomics.
// launch: grid 8 block 32
// args: in u32 256; inout u32 1

extern "C" __global__ void bug_blocks_sum(const unsigned* x, unsigned* sum) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.x == 0) {
        *sum += x[i]; // expect: race
    }
}

extern "C" __global__ void fixed_blocks_sum(const unsigned* x, unsigned* sum) {
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.x == 0) {
        atomicAdd(sum, x[i]);
    }
}
