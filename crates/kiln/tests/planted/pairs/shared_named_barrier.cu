// Consumers wait at another named barrier than the producers arrive at.
// launch: grid 1 block 128
// args: out u32 64

extern "C" __global__ void bug_shared_named_barrier(unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 64) {
        s[t] = t; // expect: race
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        y[t - 64] = s[127 - t]; // expect: race
    }
}

extern "C" __global__ void fixed_shared_named_barrier(unsigned* y) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 64) {
        s[t] = t;
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        y[t - 64] = s[127 - t];
    }
}
