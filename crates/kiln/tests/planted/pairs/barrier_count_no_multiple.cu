// A barrier waits for a number of threads that is no multiple of the warp size.
// launch: grid 1 block 64
// args: out u32 64; value u32 48

extern "C" __global__ void bug_barrier_count_no_multiple(unsigned* y, unsigned count) {
    asm volatile("bar.sync 1, %0;" :: "r"(count) : "memory"); // expect: barrier
    y[threadIdx.x] = count;
}

extern "C" __global__ void fixed_barrier_count_no_multiple(unsigned* y, unsigned count) {
    asm volatile("bar.sync 1, %0;" :: "r"((count + 31) / 32 * 32) : "memory");
    y[threadIdx.x] = count;
}
