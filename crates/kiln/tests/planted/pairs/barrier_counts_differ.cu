// Two warps wait at one barrier with different numbers of threads.
// launch: grid 1 block 64
// args: out u32 64

extern "C" __global__ void bug_barrier_counts_differ(unsigned* y) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory"); // expect: barrier
    else asm volatile("bar.sync 1, %0;" :: "n"(96) : "memory"); // expect: barrier
    y[threadIdx.x] = 1;
}

extern "C" __global__ void fixed_barrier_counts_differ(unsigned* y) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 1, %0;" :: "n"(64) : "memory");
    y[threadIdx.x] = 1;
}
