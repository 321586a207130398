// The averages of four bytes are computed in plain integer code, and three of the bytes were never written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_average(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned char*)s)[4 * t + 3] = x[t];
    unsigned all = __vavgu4(((volatile unsigned*)s)[t], 0x10203040); // expect: uninitialised
    y[t] = all >> 16 & 0xff; // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_average(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned char*)s)[4 * t + 3] = x[t];
    unsigned all = __vavgu4(((volatile unsigned*)s)[t], 0x10203040);
    y[t] = all >> 24;
}
