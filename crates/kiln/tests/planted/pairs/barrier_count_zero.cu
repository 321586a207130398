// A barrier waits for no threads at all.
// launch: grid 1 block 64
// args: out u32 64; value u32 0

extern "C" __global__ void bug_barrier_count_zero(unsigned* y, unsigned count) {
    asm volatile("bar.sync 1, %0;" :: "r"(count) : "memory"); // expect: barrier
    y[threadIdx.x] = count;
}

extern "C" __global__ void fixed_barrier_count_zero(unsigned* y, unsigned count) {
    asm volatile("bar.sync 1, %0;" :: "r"(count == 0 ? 64 : count) : "memory");
    y[threadIdx.x] = count;
}
