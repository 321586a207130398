// A barrier waits for more threads than the block has. They wait for ever.
// launch: grid 1 block 64
// args: out u32 64; value u32 96

extern "C" __global__ void bug_barrier_count_too_large(unsigned* y, unsigned count) {
    asm volatile("bar.sync 1, %0;" :: "r"(count) : "memory"); // expect: barrier
    y[threadIdx.x] = count;
}

extern "C" __global__ void fixed_barrier_count_too_large(unsigned* y, unsigned count) {
    asm volatile("bar.sync 1, %0;" :: "r"(min(count, blockDim.x)) : "memory");
    y[threadIdx.x] = count;
}
