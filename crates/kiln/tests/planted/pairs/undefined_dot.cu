// A dot product of bytes counts one that was never written; in the twin its weight is zero.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_dot(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 3; ++i) ((volatile unsigned char*)s)[4 * t + i] = x[t];
    y[t] = __dp4a(((volatile unsigned*)s)[t], 0x01010101u, 7u); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_dot(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    for (unsigned i = 0; i < 3; ++i) ((volatile unsigned char*)s)[4 * t + i] = x[t];
    y[t] = __dp4a(((volatile unsigned*)s)[t], 0x00010101u, 7u);
}
