// A block that was freed and handed out again is read as if it were zero.
// launch: grid 1 block 64
// args: reused u32 64; returned u32 64

extern "C" __global__ void bug_uninitialised_reused(unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    y[t] = x[t]; // expect: uninitialised
    x[t] = 0;
}

extern "C" __global__ void fixed_uninitialised_reused(unsigned* x, unsigned* y) {
    unsigned t = threadIdx.x;
    x[t] = 0;
    y[t] = x[t];
}
