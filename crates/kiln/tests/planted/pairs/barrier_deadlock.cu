// Each half of a block waits for the other at a different barrier.
// launch: grid 1 block 64
// args: out u32 64

extern "C" __global__ void bug_barrier_deadlock(unsigned* y) {
    if (threadIdx.x < 32) asm volatile("bar.sync 2, 64;" ::: "memory"); // expect: deadlock
    else asm volatile("bar.sync %0, 64;" :: "n"(3) : "memory"); // expect: deadlock
    y[threadIdx.x] = 1;
}

extern "C" __global__ void fixed_barrier_deadlock(unsigned* y) {
    if (threadIdx.x < 32) asm volatile("bar.sync 2, 64;" ::: "memory");
    else asm volatile("bar.sync %0, 64;" :: "n"(2) : "memory");
    y[threadIdx.x] = 1;
}
