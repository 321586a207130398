// A value that was never written is carried through a loop and used behind it.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_loop(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (t != 0) s[t] = x[t];
    __syncthreads();
    unsigned held = *(volatile unsigned*)&s[0]; // expect: uninitialised
    for (unsigned i = 1; i < x[7]; ++i) {
        unsigned next = ((volatile unsigned*)s)[i];
        if (next > 40) held = next;
    }
    y[t] = held * 3; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_loop(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    if (t != 0) s[t] = x[t];
    __syncthreads();
    unsigned held = *(volatile unsigned*)&s[0];
    for (unsigned i = 1; i < x[7]; ++i) {
        unsigned next = ((volatile unsigned*)s)[i];
        if (next > 0) held = next;
    }
    y[t] = held * 3;
}
