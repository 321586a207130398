// Warps pass a barrier in a loop a different number of times, and then another barrier.
// launch: grid 1 block 64
// args: in u32 64; out u32 64

extern "C" __global__ void bug_barrier_trip_counts(const unsigned* x, unsigned* y) {
    unsigned trips = 1 + threadIdx.x / 32;
    for (unsigned i = 0; i < trips; ++i) asm volatile("bar.sync 1, 64;" ::: "memory"); // expect: deadlock
    asm volatile("bar.sync 2, 64;" ::: "memory"); // expect: deadlock
    y[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void fixed_barrier_trip_counts(const unsigned* x, unsigned* y) {
    unsigned trips = 2;
    for (unsigned i = 0; i < trips; ++i) asm volatile("bar.sync 1, 64;" ::: "memory");
    asm volatile("bar.sync 2, 64;" ::: "memory");
    y[threadIdx.x] = x[threadIdx.x];
}
