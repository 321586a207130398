// The highest bit that is set is looked for in a word of which one byte was written.
// launch: grid 1 block 32
// args: in u32 32; returned u32 32

extern "C" __global__ void bug_undefined_highest_bit(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned char*)s)[4 * t + 3] = x[t];
    unsigned all = ((volatile unsigned*)s)[t]; // expect: uninitialised
    y[t] = __clz(all & 0x00ffffff); // expect: uninitialised
}

extern "C" __global__ void fixed_undefined_highest_bit(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[32];
    unsigned t = threadIdx.x;
    ((volatile unsigned char*)s)[4 * t + 3] = x[t];
    unsigned all = ((volatile unsigned*)s)[t];
    y[t] = __clz(all | 0x01000000);
}
