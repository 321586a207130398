// A producer arrives a second time at a barrier that the consumer has not reached yet, so that its two arrivals complete it.
// launch: grid 1 block 64
// args: out u32 64

extern "C" __global__ void bug_barrier_arrives_twice(unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 32) {
        s[t] = t;
        asm volatile("bar.arrive 1, 64;" ::: "memory"); // expect: barrier
        s[t + 32] = t;
        asm volatile("bar.arrive 1, 64;" ::: "memory"); // expect: barrier
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t - 32] = s[63 - t];
    }
}

extern "C" __global__ void fixed_barrier_arrives_twice(unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 32) {
        s[t] = t;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        s[t + 32] = t;
        asm volatile("bar.arrive 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t - 32] = s[63 - t];
        asm volatile("bar.sync 2, 64;" ::: "memory");
        y[t] = s[95 - t];
    }
}
